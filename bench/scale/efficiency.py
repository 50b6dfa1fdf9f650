"""Two processes that torchrun started against one process with two threads: the same batches on the same two cores.

    python -m bench.scale efficiency --text TEXT [--repeats 3] [--only NAME ...]

Sides are measured in turns. An efficiency of 1 means that a step takes as long.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.scale.speed import Training, alone, together

GOAL = 0.95
STEPS = {"bert small": 12, "bert mini": 40, "elmo small": 10, "elmo mini": 25}
"""About half a minute of training for each."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale efficiency", description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    given = parser.parse_args(arguments)
    fell_short = False
    for name in given.only:
        kind, size = name.split()
        training = Training(kind, size, given.text.resolve(), STEPS[name])
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            one, two = [], []
            for _ in range(given.repeats):
                one.append(alone(training, Path(folder), threads=2))
                two.append(together(training, Path(folder)))
        ratio = statistics.median(one) / statistics.median(two)
        fell_short |= ratio < GOAL
        print(
            f"{name}: one process {statistics.median(one):.3f} s a step ({spread(one)}), two "
            f"{statistics.median(two):.3f} ({spread(two)}), efficiency {ratio:.2f} (goal {GOAL})",
            flush=True,
        )
    return int(fell_short)


def spread(seconds: Sequence[float]) -> str:
    return " ".join(f"{each:.3f}" for each in seconds)
