"""Memory that was freed, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def release_freed() -> bool:
    """Give the system back what the C allocator keeps for later; return whether there is such a thing to ask.

    Texts of ever other lengths leave holes that no tensor of the next step fits into exactly, so that a process grows
    while it trains, the more if the allocator never gives anything back (`headstart.cli.allocator`).
    """
    if not sys.platform.startswith("linux"):
        return False
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if malloc_trim is None:
        return False
    malloc_trim(0)
    return True
