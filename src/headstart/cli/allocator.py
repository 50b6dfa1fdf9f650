"""glibc's allocator, tuned for training. It is a setting of the whole process, so only the command line makes it."""

from __future__ import annotations

import ctypes
import sys

# From glibc's <malloc.h>.
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
NEVER = -1

TRAINING = frozenset({"transfer", "compare", "demo", "reproduce"})
"""Commands that train from the beginning. `pretrain` tunes it once the text is read; the others should stay small."""


def tune_allocator() -> bool:
    """Stop the C allocator from returning freed memory to the system in this process; return whether that worked.

    Every training step on a CPU allocates and frees the same few hundred megabytes. By default glibc returns them to
    the kernel, which then has to clear every page again: an eighth of an ELMo step. The price is that the process stays
    at its largest size, and it cannot be undone, so library calls never do this: a program that trains with Headstart
    keeps its own allocator settings, and may call this function itself. On other C libraries nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, NEVER))
