"""`headstart --help` against a bare Python: a command line that answers at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.measure import Measurement, in_turns

GOAL_SECONDS = 0.3


def run(data: Path | None = None) -> list[Measurement]:
    def ours() -> int:
        subprocess.run([sys.executable, "-m", "headstart", "--help"], check=True, capture_output=True)
        return 1

    def bare() -> int:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        return 1

    mine, other = in_turns(ours, bare)
    goal = round(1 / GOAL_SECONDS / other, 2)
    return [Measurement("headstart --help", "runs/s", mine, other, "python -c pass", goal)]
