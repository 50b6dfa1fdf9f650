"""Runs of real processes under torchrun: the losses of one process, and the same bits whatever happens to them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import headstart
from headstart.pretraining.loop import Step
from headstart.training.tensors import read_tensors

STEPS = 50
TINY = {
    "bert": ["encoder.width=16", "encoder.inner=32", "training.batch=256", "objective.length=32"],
    "elmo": ["encoder.cell=16", "encoder.projection=8", "training.batch=200", "encoder.dropout=0"],
}
SETTINGS = ["training.precision=float32", "training.save_seconds=0"]


def options(kind: str) -> list[str]:
    settings = [*SETTINGS, *TINY[kind]]
    return ["--size", "tiny", "--steps", str(STEPS), *(part for setting in settings for part in ("--set", setting))]


@contextmanager
def torchrun(*arguments: object, processes: int = 2, restarts: int = 0) -> Iterator[subprocess.Popen[str]]:
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", f"--max-restarts={restarts}"]
    process = subprocess.Popen(
        [sys.executable, "-m", *launcher, "-m", "headstart", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def finished(*arguments: object, processes: int = 2) -> str:
    """Run to the end, which is a good one; what was said."""
    with torchrun(*arguments, processes=processes) as process:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return said


def workers(launcher: int) -> dict[int, int]:
    """The processes that torchrun has started, by rank."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    found = {}
    for child in map(int, children):
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        ranks = [int(entry.removeprefix(b"RANK=")) for entry in environment if entry.startswith(b"RANK=")]
        found |= dict.fromkeys(ranks, child)
    return found


def steps_logged(run: Path) -> list[dict[str, float]]:
    log = run / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if '"loss"' in line]


def wait_for_steps(run: Path, n: int, process: subprocess.Popen[str]) -> None:
    while len(steps_logged(run)) < n:
        assert process.poll() is None
        time.sleep(0.01)


def same_losses(run: Path, other: Path) -> None:
    mine, theirs = ([step["loss"] for step in steps_logged(path)] for path in (run, other))
    assert len(mine) == STEPS
    assert mine == pytest.approx(theirs, abs=1e-5)


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes that nothing happened to."""
    run = tmp_path_factory.mktemp("torchrun") / "whole"
    said = finished("pretrain", "bert", corpus, "--out", run, *options("bert"))
    assert said.count("Done in") == 1  # once, not by every process
    assert "2 processes with 1 threads each" in said
    assert "2 processes" in (run / "CARD.md").read_text()
    return run


@pytest.fixture(scope="module", autouse=True)
def one_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTART_HOME", str(tmp_path_factory.getbasetemp() / "headstart-home"))
        yield


def alone(kind: str, corpus: Path, out: Path) -> Path:
    settings = [*SETTINGS, *TINY[kind]]
    list(headstart.pretrain(kind, corpus, out=out, size="tiny", steps=STEPS, settings=settings))
    return out


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
