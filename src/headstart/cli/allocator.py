"""glibc's allocator, tuned for training. It is a setting of the whole process, so only the command line makes it."""

from __future__ import annotations

import ctypes
import sys

# From glibc's <malloc.h>.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_MMAP_MAX = -4
NEVER = -1
LARGE_BYTES = 1 << 20

TRAINING = frozenset({"transfer", "compare", "demo", "reproduce"})
"""Commands that train from the beginning. `pretrain` tunes it once the text is read; the others should stay small."""


def tune_allocator() -> bool:
    """Stop the C allocator from returning freed memory to the system in this process; return whether that worked.

    Every training step on a CPU allocates and frees the same few hundred megabytes. By default glibc returns them to
    the kernel, which then has to clear every page again: an eighth of an ELMo step. The price is that the process stays
    at its largest size, and it cannot be undone, so library calls never do this: a program that trains with Headstart
    keeps its own allocator settings, and may call this function itself. On other C libraries nothing happens.
    """
    return mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, NEVER)


def return_large_blocks() -> bool:
    """The opposite, for a process that has little memory: every large block goes back to the system when it is freed.

    Otherwise glibc keeps blocks of up to 32 MB once one was freed, and weights that come and go leave gaps in its heap:
    a process of a divided BERT base grew to more than a whole one has.
    """
    return mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def mallopt(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    function = getattr(ctypes.CDLL(None), "mallopt", None)
    return function is not None and bool(function(option, value))
