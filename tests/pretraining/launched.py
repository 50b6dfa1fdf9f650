"""Runs of real processes under torchrun, of models so small that most of their time is the start of Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headstart

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


def alone(kind: str, corpus: Path, out: Path) -> Path:
    """The same run in this process."""
    settings = [*SETTINGS, *TINY[kind]]
    list(headstart.pretrain(kind, corpus, out=out, size="tiny", steps=STEPS, settings=settings))
    return out


@pytest.fixture(scope="module", autouse=True)
def one_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTART_HOME", str(tmp_path_factory.getbasetemp() / "headstart-home"))
        yield
