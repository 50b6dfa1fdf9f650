"""Keep the memory of one step for the next: fresh memory is given page by page, and every page is cleared first."""

from __future__ import annotations

import ctypes
import sys
import threading

import torch
from torch import Tensor

# From glibc's <malloc.h>.
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
NEVER = -1

MOST_KEPT = 1 << 24
"""Numbers of one array that are kept; a larger one is made anew."""


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


def hand_back_freed_memory() -> None:
    """Give the system what the C allocator holds free between arrays in use, which else adds up over a long stream."""
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


class Arena:
    """Arrays that were used before and are free again, for the large ones that every step needs anew."""

    def __init__(self) -> None:
        self.free: dict[str, list[Tensor]] = {}

    def take(self, name: str, rows: int, columns: int, like: Tensor) -> Tensor:
        """An array of this shape, with anything in it. Those of one name are alike in size."""
        size, free = rows * columns, self.free.setdefault(f"{name} {like.dtype} {like.device}", [])
        try:
            kept = free.pop()
        except IndexError:
            kept = like.new_empty(0)
        if len(kept) < size:
            kept = torch.empty(size, dtype=like.dtype, device=like.device)
        return kept[:size].view(rows, columns)

    def give(self, name: str, taken: Tensor) -> None:
        whole = taken._base if taken._base is not None else taken
        self.free[f"{name} {taken.dtype} {taken.device}"].append(whole.flatten())


class Lease:
    """Arrays of an arena for as long as this object lives, as those that a graph needs until it is freed."""

    def __init__(self, arena: Arena, arrays: dict[str, Tensor]) -> None:
        self.arena, self.arrays = arena, arrays

    def __del__(self) -> None:
        for name, array in self.arrays.items():
            self.arena.give(name, array)


class Scratch(threading.local):
    """This thread's arrays, by name. What is taken under a name is no longer what it was when that was taken before."""

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, columns: int) -> Tensor:
        size = rows * columns
        if size > MOST_KEPT:
            return torch.empty(rows, columns)
        if name not in self.kept or len(self.kept[name]) < size:
            self.kept[name] = torch.empty(size)
        return self.kept[name][:size].view(rows, columns)
