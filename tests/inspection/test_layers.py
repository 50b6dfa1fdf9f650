"""The mixes of task models, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import headstart
from headstart.errors import CheckpointError, ConfigError
from headstart.inspection.layers import WITHOUT_WEIGHTS, layers_of
from headstart.mix import MIXES, Scalar
from headstart.tasks.classify import Classify
from headstart.transfer.fit import untrained
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_files import save_task_model

W = {"elmo": [0.0, 1.0, 3.0], "bert": [2.0, 0.0, 0.0], "static": [0.0]}
GAMMA = 0.7


def saved(folder: Path, runs: dict[str, Path], kinds: str, how: str = "frozen", **mix: Any) -> Path:
    """A task model whose scalar mixes have the weights W, as `transfer` saves it."""
    start = open_start("+".join(str(runs[kind]) for kind in kinds.split("+")))
    config = settings_for(Classify, start, how, {"mix": mix, "network": {"width": 4}})
    made = untrained(start, config, Classify(("bad", "good")), [])
    for reader in made.model.each_reader:
        for _, one in reader.placed_mixes():
            if isinstance(one, Scalar):
                with torch.no_grad():
                    one.w.copy_(torch.tensor(W[reader.encoder.kind]))
                    one.gamma.fill_(GAMMA)
    save_task_model(made, folder, {"source": start.name})
    return folder


def softmax(kind: str) -> Any:
    return pytest.approx(torch.tensor(W[kind]).softmax(0).tolist())


def test_the_weights_of_two_tasks(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    runs = [saved(tmp_path / kind, pretrained_runs, kind) for kind in ("elmo", "bert")]
    found = layers_of(runs)
    assert found.titles() == ["elmo", "bert"]
    for mix, kind in zip(found.mixes, ("elmo", "bert"), strict=True):
        assert (mix.run, mix.task, mix.how, mix.encoder, mix.place) == (kind, "classify", "frozen", kind, "input")
        assert mix.weights == softmax(kind)
        assert mix.gamma == pytest.approx(GAMMA)
        assert mix.note == ""


def test_encoders_side_by_side_and_both_places_have_a_mix_each(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    found = layers_of([saved(tmp_path / "run", pretrained_runs, "static+elmo", place="both")])
    assert found.titles() == [f"run, {kind}, {place}" for kind in ("static", "elmo") for place in ("input", "output")]
    assert [mix.weights for mix in found.mixes] == [softmax(kind) for kind in ("static", "static", "elmo", "elmo")]


@pytest.mark.parametrize("kind", [kind for kind in MIXES if kind != "scalar"])
def test_a_model_without_layer_weights_says_what_it_reads(
    kind: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    (mix,) = layers_of(saved(tmp_path / "run", pretrained_runs, "bert", kind=kind)).mixes
    assert (mix.weights, mix.gamma, mix.note) == (None, None, WITHOUT_WEIGHTS[kind])


def test_a_fine_tuned_run_reads_the_last_layer(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    tuned = saved(tmp_path / "tuned", pretrained_runs, "bert", "finetune")
    found = layers_of([tuned])
    assert found.learned == ()
    assert found.mixes[0].note == WITHOUT_WEIGHTS["last"]
    assert found.as_table()["mixes"][0] == {
        "run": "tuned",
        "task": "classify",
        "how": "finetune",
        "encoder": "bert",
        "place": "input",
        "weights": None,
        "gamma": None,
        "note": WITHOUT_WEIGHTS["last"],
    }


def test_what_is_no_task_model(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run to show"):
        layers_of([])
    with pytest.raises(CheckpointError, match="without a trained head"):
        layers_of([pretrained_runs["bert"]])
    with pytest.raises(headstart.HeadstartError, match="no such file or folder"):
        layers_of([tmp_path / "none"])
