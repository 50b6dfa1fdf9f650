"""Refuse a run whose parameters cannot fit into memory, before any of them is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from headstart.errors import ConfigError

HOPELESS = 2
"""Parameters of this many times the available memory are refused; below, other programs or swap may make room."""


def check_memory(needed: int, available: int | None = None) -> None:
    """needed: bytes that the parameters take in training; available: left out, what the system has free now."""
    available = available_bytes() if available is None else available
    if needed > HOPELESS * available:
        raise ConfigError(
            f"Training needs {needed / 1e9:,.0f} GB of memory for the parameters alone, but {available / 1e9:,.1f} GB "
            f"are available. Choose a smaller size, fewer dimensions or a smaller vocabulary."
        )


def available_bytes() -> int:
    """Memory that can be allocated without swapping; where the system does not say, all there is."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(kilobytes)
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
