"""Keep the memory of one training step for the next."""

from __future__ import annotations

import ctypes
import sys

# From glibc's <malloc.h>.
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
NEVER = -1


def keep_freed_memory() -> bool:
    """Stop the C allocator from handing freed memory back to the system, for this process; say whether it took it.

    Every training step on a CPU allocates and frees the same few hundred megabytes. glibc returns them to the kernel,
    which then clears each page anew: an eighth of an ELMo step. Call it once, before training; the price is that the
    process stays at its greatest size. Elsewhere than on glibc nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, NEVER))
