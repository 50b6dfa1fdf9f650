"""One point, measured in a process of its own: python -m bench.growth.child WORK '{"option": value}'

Memory is the peak of what the process holds while it works, its model included, less what it held before there was one.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from bench.growth.works import WORKS, Step
from bench.memory import family

SECONDS_BETWEEN_LOOKS = 0.05
RESET_PEAK = "5"  # what the kernel takes for: forget the greatest size so far


@dataclass(frozen=True, slots=True)
class Figures:
    tokens: int
    seconds: float
    peak_bytes: int


class KernelsRecord:
    """The greatest size of this process, as the kernel keeps it."""

    def __init__(self) -> None:
        self.start = status("VmRSS")

    def forget_peak(self) -> None:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)

    def peak(self) -> int:
        return status("VmHWM") - self.start


class RegularLooks:
    """The greatest sum over this process and those it starts, of what they hold besides mapped files."""

    def __init__(self) -> None:
        self.start = self.most = self.held()
        threading.Thread(target=self.look, daemon=True).start()

    def forget_peak(self) -> None:
        self.most = self.held()

    def look(self) -> None:
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            self.most = max(self.most, self.held())

    def held(self) -> int:
        return sum(map(own_bytes, family(os.getpid())))

    def peak(self) -> int:
        return max(self.most, self.held()) - self.start


def own_bytes(process: int) -> int:
    """A process's memory without files, pages that it shares with others in part."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))


def status(name: str) -> int:
    """A figure of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}")


def measure(name: str, options: dict[str, object]) -> Figures:
    work = WORKS[name]
    torch.rand(64, 64) @ torch.rand(64, 64)  # the libraries set themselves up at the first product
    memory = RegularLooks() if work.reads_corpus else KernelsRecord()
    step = work.build(**options)
    memory.forget_peak()  # drawing random weights takes more than using them
    if work.repeats:
        step()
    seconds, tokens = zip(*(timed(step) for _ in range(max(1, work.repeats))), strict=True)
    return Figures(tokens[0], statistics.median(seconds), memory.peak())


def timed(step: Step) -> tuple[float, int]:
    began = time.perf_counter()
    tokens = step()
    return time.perf_counter() - began, tokens


if __name__ == "__main__":
    print(json.dumps(asdict(measure(sys.argv[1], json.loads(sys.argv[2])))))
