"""How long a step takes: real runs of `pretrain`, timed by their logs."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.scale.launched import Launched, Machines

RUN = "run"
WARMING = 3
"""Steps before the first one that counts: buffers are allocated in them."""


@dataclass(frozen=True, slots=True)
class Training:
    """A run that is only timed. settings: such as "training.batch=4096"."""

    kind: str
    size: str
    text: Path
    steps: int
    settings: tuple[str, ...] = ()

    def options(self, out: Path) -> list[str]:
        # One evaluation, of a few tokens, and one checkpoint, both after the last step that counts.
        settings = ["training.evaluations=1", "training.evaluate_units=1", "training.save_seconds=100000"]
        return [
            *("pretrain", self.kind, str(self.text), "--out", str(out), "--size", self.size, "--quiet"),
            *("--steps", str(self.steps)),
            *(part for setting in (*settings, *self.settings) for part in ("--set", setting)),
        ]


def seconds_per_step(run: Path) -> float:
    """The median over stretches of a quarter of the steps, between the first few and the last one, which is evaluated.

    The log has hundredths of a second, and single steps may take a tenth.
    """
    lines = (json.loads(line) for line in (run / "log.jsonl").read_text().splitlines() if '"loss"' in line)
    moments = [line["elapsed"] for line in lines][WARMING:-1]
    steps = max(1, len(moments) // 4)
    stretches = zip(moments, moments[steps:], strict=False)
    return statistics.median((after - before) / steps for before, after in stretches)


def alone(training: Training, folder: Path, threads: int, cores: str | None = None) -> float:
    """One process without torchrun. cores: those that it may use, as taskset writes them."""
    run_alone(training, folder, threads, cores)
    return seconds_per_step(folder / RUN)


def run_alone(training: Training, folder: Path, threads: int, cores: str | None = None) -> None:
    out = fresh(folder)
    pinned = [] if cores is None else ["taskset", "--cpu-list", cores]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HEADSTART_HOME": str(folder / "home")}
    command = [*pinned, sys.executable, "-m", "headstart", *training.options(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr[-4000:])


def together(training: Training, folder: Path, more: Sequence[str] = ()) -> float:
    """Two processes of a thread each on this machine."""
    out = fresh(folder)
    with Launched([*training.options(out), *more], folder) as launched:
        launched.ended()
    return seconds_per_step(out)


def apart(training: Training, folder: Path, megabits: float | None, more: Sequence[str] = ()) -> float:
    """Two machines of a core each, and the cable between them."""
    out = fresh(folder)
    with Machines(megabits, pinned=True) as machines:
        for one in machines.start([*training.options(out), *more], folder):
            one.ended()
    return seconds_per_step(out)


def fresh(folder: Path) -> Path:
    out = folder / RUN
    shutil.rmtree(out, ignore_errors=True)
    return out
