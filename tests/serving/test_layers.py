"""The routes that look into the layers give what the functions behind them give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.conftest import FEW, Running, serving

from headstart.inspection.attend import attend
from headstart.pretrained import load_run
from headstart.progress import result_of
from headstart.serving.models import Models, ServedEncoder, ServedTask
from headstart.serving.requests import LONGEST_ATTENDED
from headstart.tasks import TASKS, task_class
from headstart.transfer.fit import transfer_once
from headstart.transfer.start import open_start, settings_for

TEXT = "Nobody likes filmed , nobody ."


@pytest.mark.parametrize("layer", [1, 2])
def test_attention_is_that_of_attend_between_words(server: Running, served_models: Models, layer: int) -> None:
    expected = attend(served_models.encoder("bert", "attention"), TEXT, layer, at_words=True)
    found = server.ask("/api/attention", {"model": "bert", "text": TEXT, "layer": layer}).json
    assert found["units"] == ["[CLS]", *TEXT.split(), "[SEP]"]
    np.testing.assert_allclose(found["heads"], expected.probabilities[0], atol=1e-4)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"model": "elmo"}, "'elmo' cannot do 'attention'. Ask bert."),
        ({"layer": 3}, "There is no layer 3: this encoder has the layers 1 to 2."),
        ({"text": " "}, "There is no word to attend to in ' '. Give a sentence."),
        ({"text": "a" * (LONGEST_ATTENDED + 1)}, "text: String should have at most 300 characters."),
    ],
)
def test_what_cannot_be_attended_to_is_refused(server: Running, body: dict[str, Any], sentence: str) -> None:
    answer = server.ask("/api/attention", {"model": "bert", "text": TEXT, "layer": 1} | body)
    assert (answer.status, answer.detail) == (422, sentence)


def test_int8_has_no_attention_to_show(pretrained_runs: dict[str, Path]) -> None:
    pretrained = load_run(pretrained_runs["bert"])
    assert "attention" in ServedEncoder("bert", pretrained).can
    rounded = replace(pretrained, encoder=pretrained.encoder.quantised())
    assert "attention" not in ServedEncoder("bert", rounded).can


def test_layers_are_those_that_each_task_learned(server: Running, served_models: Models) -> None:
    found = {one["model"]: one for one in server.ask("/api/layers").json["mixes"]}
    assert set(found) == set(TASKS)
    for name, one in found.items():
        (learned,) = served_models.task(name).model.mix_weights()
        assert one["weights"] == pytest.approx(learned["input"]["weights"])
        assert one["gamma"] == pytest.approx(learned["input"]["gamma"])
        assert sum(one["weights"]) == pytest.approx(1)
        assert (one["task"], one["kind"], one["how"], one["place"]) == (name, "bert", "frozen", "input")


def test_a_model_without_a_learned_mix_says_what_it_reads(
    pretrained_runs: dict[str, Path], tiny_examples: dict[str, list[Any]]
) -> None:
    start, kind, examples = open_start(pretrained_runs["bert"]), task_class("classify"), tiny_examples["classify"]
    config = settings_for(kind, start, "finetune", FEW)
    fitted = result_of(transfer_once(start, config, kind.learn(examples), examples, examples, seed=0))
    with serving(Models([ServedTask("tuned", fitted.model, ("minilm",))])) as server:
        (found,) = server.ask("/api/layers").json["mixes"]
    assert (found["encoder"], found["how"], found["weights"]) == ("minilm", "finetune", None)
    assert found["note"] == "reads the last layer alone"
