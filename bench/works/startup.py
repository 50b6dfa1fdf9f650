"""`headstart --help` against a bare Python: a command line that answers in 0.3 s."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from bench.measure import Measurement, Setting, Side, in_turns

GOAL_SECONDS = 0.3


def run(setting: Setting) -> Iterator[Measurement]:
    def ours() -> int:
        subprocess.run([sys.executable, "-m", "headstart", "--help"], check=True, capture_output=True)
        return 1

    def bare() -> int:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        return 1

    rates = in_turns({"ours": Side(ours), "python": Side(bare)}, setting.repeats)
    yield Measurement(
        work="headstart --help",
        unit="runs/s",
        ours=rates["ours"],
        peer=rates["python"],
        peer_name="python -c pass",
        goal=1 / GOAL_SECONDS / median(rates["python"]),
        note=f"{1 / median(rates['ours']):.2f} s, wanted {GOAL_SECONDS} s",
    )
