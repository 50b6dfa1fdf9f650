"""Runs of real processes under torchrun: the losses of one process, and the same bits whatever happens to them."""

from __future__ import annotations

import os
import random
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
from headstart.pretraining.loop import Step
from headstart.training.tensors import read_tensors


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes that nothing happened to."""
    run = tmp_path_factory.mktemp("torchrun") / "whole"
    said = finished("pretrain", "bert", corpus, "--out", run, *options("bert"))
    assert said.count("Done in") == 1  # once, not by every process
    assert "2 processes with 1 threads each" in said
    assert "2 processes" in (run / "CARD.md").read_text()
    return run


def test_two_processes_have_the_losses_of_one_bert(whole: Path, corpus: Path, tmp_path: Path) -> None:
    same_losses(whole, alone("bert", corpus, tmp_path / "alone"))


def test_three_processes_have_the_losses_of_one_elmo(corpus: Path, tmp_path: Path) -> None:
    command = ["pretrain", "elmo", corpus, "--out", tmp_path / "three", "--quiet", *options("elmo")]
    assert "headstart" not in finished(*command, processes=3)
    same_losses(tmp_path / "three", alone("elmo", corpus, tmp_path / "alone"))


def test_killed_and_restarted_ends_with_the_same_weights_to_the_bit(whole: Path, corpus: Path, tmp_path: Path) -> None:
    run, rng = tmp_path / "killed", random.Random(5)
    command = ["pretrain", "bert", corpus, "--out", run, *options("bert")]
    with torchrun(*command, restarts=2) as process:
        for rank, step in ((1, rng.randrange(1, 20)), (0, rng.randrange(20, 45))):
            wait_for_steps(run, step, process)
            os.kill(workers(process.pid)[rank], signal.SIGKILL)
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert said.count("Going on from step") == 2
    first, second = (read_tensors(path / "weights.safetensors") for path in (whole, run))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert [step["loss"] for step in steps_logged(whole)] == [step["loss"] for step in steps_logged(run)]


def test_a_stop_of_any_process_saves_and_any_number_of_processes_goes_on(
    whole: Path, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "stopped"
    with torchrun("pretrain", "bert", corpus, "--out", run, *options("bert"), restarts=3) as process:
        wait_for_steps(run, 10, process)
        os.kill(workers(process.pid)[1], signal.SIGTERM)
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said  # and torchrun has not restarted what was asked to stop
    assert said.count("Stopped, with everything saved") == 1
    stopped_at = len(steps_logged(run))
    assert 10 <= stopped_at < STEPS
    for event in headstart.pretrain("bert", out=run, resume=True):
        if isinstance(event, Step) and event.number == stopped_at + 3:
            break
    assert "Going on from step" in finished("pretrain", "bert", "--out", run, "--resume", processes=3)
    same_losses(run, whole)


def test_a_mistake_is_said_once_and_ends_every_process(corpus: Path, tmp_path: Path) -> None:
    with torchrun("pretrain", "bert", tmp_path / "none.txt", "--out", tmp_path / "run") as process:
        said = process.communicate(timeout=300)[1]
    assert process.returncode != 0
    assert said.count("headstart: ") == 1
    assert "none.txt: there is no such file" in said
    assert "exitcode  : 2" in said
    assert not (tmp_path / "run").exists()
