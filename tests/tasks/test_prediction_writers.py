"""Predictions as lines."""

from __future__ import annotations

import datetime
import json

from headstart.tasks.classify import Classify, Prediction, TextExample
from headstart.tasks.prediction_writers import JsonLines


def test_values_that_json_has_no_form_for_become_strings() -> None:
    task = Classify(("bad", "good"))
    record = {"text": "fine", "seen": datetime.date(2024, 2, 29)}
    example = TextExample("fine", None, record=record)
    (line,) = JsonLines(task).lines([(example, Prediction("good", [0.1, 0.9]))]).splitlines()
    assert json.loads(line)["seen"] == "2024-02-29"
