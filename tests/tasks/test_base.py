from __future__ import annotations

import pytest

from headstart.errors import ConfigError
from headstart.tasks.base import of_class, score_lines


def test_score_lines_by_hand() -> None:
    rows = {"PER": {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "gold": 1842, "predicted": 921}}
    assert score_lines("type", rows, ("gold", "predicted")) == [
        "type  precision    recall        F1      gold  predicted",
        "PER     100.0 %    50.0 %    66.7 %     1,842        921",
    ]


def test_the_columns_stand_under_their_names_whatever_the_labels() -> None:
    row = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "examples": 7}
    head, *lines = score_lines("label", {"a": row, "a very long label": row}, ("examples",))
    assert {len(line) for line in lines} == {len(head)}


def test_what_belongs_to_another_task_is_named() -> None:
    assert of_class(str, "text") == "text"
    with pytest.raises(ConfigError, match="needs a str; got int"):
        of_class(str, 3)
