"""`--shard` under torchrun: the losses of a whole model, and checkpoints that any number of processes goes on with."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from tests.pretraining.launched import (
    STEPS,
    alone,
    finished,
    one_home,  # noqa: F401 (a fixture)
    options,
    same_losses,
    steps_logged,
    torchrun,
    wait_for_steps,
    workers,
)

import headstart
from headstart.errors import CheckpointError, ConfigError
from headstart.pretraining import sharded
from headstart.pretraining.loop import Step
from headstart.progress import Notice
from headstart.training import shared_folder
from headstart.training.tensors import read_tensors


@pytest.fixture(scope="module")
def divided(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two processes that nothing happened to."""
    run = tmp_path_factory.mktemp("sharded") / "divided"
    said = finished("pretrain", "bert", corpus, "--out", run, "--shard", *options("bert"))
    assert "Weights, gradients and AdamW's moments are divided among 2 processes" in said
    assert said.count("Done in") == 1
    return run


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return alone("bert", corpus, tmp_path_factory.mktemp("alone") / "whole")


@pytest.fixture
def interrupted(divided: Path, tmp_path: Path) -> Path:
    """The run with its last checkpoint damaged: a bit of the second process's part is not what it was."""
    run = tmp_path / "interrupted"
    shutil.copytree(divided, run)
    parts = sorted(run.glob("state/step-*/*.safetensors"))
    assert [part.name for part in parts[-2:]] == [
        "shard-00001-of-00002.safetensors",
        "shard-00002-of-00002.safetensors",
    ]
    data = bytearray(parts[-1].read_bytes())
    data[-1] ^= 1
    parts[-1].write_bytes(data)
    return run


def saw_the_damage(said: str) -> bool:
    return f"step-{STEPS:09d}/shard-00002" in said and "Going on from the one before it" in said


def test_two_processes_have_the_losses_and_the_weights_of_one_bert(divided: Path, whole: Path) -> None:
    same_losses(divided, whole)
    ours, theirs = (read_tensors(run / "weights.safetensors") for run in (divided, whole))
    assert {name: tensor.shape for name, tensor in ours.items()} == {name: t.shape for name, t in theirs.items()}
    assert headstart.load(divided).represent(["the cat likes the film"])[0].shape[1] == 5


def test_no_file_holds_the_state_of_a_whole_model(divided: Path) -> None:
    parts = [part.stat().st_size for part in divided.glob("state/step-*/*.safetensors")]
    assert len(parts) == 4  # two checkpoints of two processes
    assert max(parts) < 0.75 * 3 * (divided / "weights.safetensors").stat().st_size
    assert not list(divided.glob("state/step-*.safetensors"))


def test_one_process_goes_on_from_the_checkpoint_before_a_damaged_one(interrupted: Path, whole: Path) -> None:
    said = " ".join(str(event.text) for event in headstart.pretrain("bert", out=interrupted, resume=True)
                    if isinstance(event, Notice))  # fmt: skip
    assert saw_the_damage(said)
    same_losses(interrupted, whole)


def test_data_parallel_processes_go_on_from_a_divided_checkpoint(interrupted: Path, whole: Path) -> None:
    assert saw_the_damage(finished("pretrain", "bert", "--out", interrupted, "--resume"))
    same_losses(interrupted, whole)


def test_three_divided_processes_go_on_from_one(corpus: Path, whole: Path, tmp_path: Path) -> None:
    """From a checkpoint in one file; the weights that are kept are those of its best step."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    newest = f"step-{STEPS:09d}"
    (run / "state" / f"{newest}.json").unlink()
    said = finished("pretrain", "bert", "--out", run, "--resume", "--shard", processes=3)
    assert "Going on from step" in said
    assert len(list(run.glob(f"state/{newest}/*.safetensors"))) == 3
    same_losses(run, whole)


def test_killed_and_restarted_ends_with_the_same_weights_to_the_bit(
    divided: Path, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "killed"
    with torchrun("pretrain", "bert", corpus, "--out", run, "--shard", *options("bert"), restarts=1) as process:
        wait_for_steps(run, 20, process)
        os.kill(workers(process.pid)[1], signal.SIGKILL)
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert "Going on from step" in said
    first, second = (read_tensors(path / "weights.safetensors") for path in (divided, run))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert [step["loss"] for step in steps_logged(divided)] == [step["loss"] for step in steps_logged(run)]


def test_an_elmo_stopped_in_any_process_goes_on_in_one(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "stopped"
    with torchrun("pretrain", "elmo", corpus, "--out", run, "--shard", *options("elmo")) as process:
        wait_for_steps(run, 25, process)
        os.kill(workers(process.pid)[1], signal.SIGTERM)
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert said.count("Stopped, with everything saved") == 1
    stopped_at = len(steps_logged(run))
    assert 25 <= stopped_at < STEPS
    assert headstart.load(run).represent(["the cat likes the film"])  # usable as it is
    numbers = [event.number for event in headstart.pretrain("elmo", out=run, resume=True) if isinstance(event, Step)]
    assert numbers[0] == stopped_at + 1
    same_losses(run, alone("elmo", corpus, tmp_path / "alone"))


def test_word_vectors_are_not_divided(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Word vectors .* Leave --shard out"):
        headstart.pretrain("skipgram", corpus, out=tmp_path / "run", shard=True)


def test_one_process_has_nothing_to_divide(corpus: Path, tmp_path: Path) -> None:
    events = list(headstart.pretrain("bert", corpus, out=tmp_path / "run", size="tiny", steps=1, shard=True))
    assert any("this one trains alone" in event.text for event in events if isinstance(event, Notice))


def test_a_folder_that_another_machine_does_not_see_is_refused(
    tmp_path: Path, in_threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_folder, "SIGHT_SECONDS", 0.0)

    def work(ranks) -> bool:
        with shared_folder.marked(tmp_path) as mark:
            if ranks.launch.is_first:
                with pytest.raises(CheckpointError, match=r"machine 0 does not see this folder.*leave --shard out"):
                    sharded.all_see(mark, ranks)
                return False
            return sharded.all_see(tmp_path / "elsewhere", ranks)

    assert in_threads(2, work) == [False, False]
    assert not list(tmp_path.iterdir())
