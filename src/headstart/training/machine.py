"""What a run was made on, for its card."""

from __future__ import annotations

import os
import platform
from pathlib import Path

PROCESSORS = Path("/proc/cpuinfo")


def machine() -> str:
    """The processor, and how many of its cores this process may use."""
    cores = available_cores()
    return f"{processor()}, {cores} core{'s' if cores > 1 else ''}"


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    if PROCESSORS.is_file():
        for line in PROCESSORS.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
