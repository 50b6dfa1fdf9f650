"""Buffers that are reused from step to step: the system gives fresh memory page by page, and clears each page."""

from __future__ import annotations

import ctypes
import sys
import threading

import torch
from torch import Tensor

MOST_KEPT = 1 << 24
"""Numbers in the largest buffer that `Scratch` keeps; a larger one is allocated each time."""


def release_freed_memory() -> None:
    """Return the C allocator's free memory to the system. Over a long stream, gaps between arrays would add up."""
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; other C libraries lack it
        if trim is not None:
            trim(0)


def lasting_buffer(*shape: int, like: Tensor | None = None) -> Tensor:
    """An array with arbitrary values that may be written to in any later call. like: its type and device.

    A tensor that is made under torch.inference_mode can never be written to outside of it, so that what is kept from
    call to call must be made as an ordinary one.
    """
    with torch.inference_mode(False):
        if like is None:
            return torch.empty(shape)
        return torch.empty(shape, dtype=like.dtype, device=like.device)


class Arena:
    """Free arrays by name, for large ones that every training step needs and gives back."""

    def __init__(self) -> None:
        self.free: dict[str, list[Tensor]] = {}

    def take(self, name: str, rows: int, columns: int, like: Tensor) -> Tensor:
        """An array of this shape with arbitrary values. Arrays of one name should be similar in size."""
        size, free = rows * columns, self.free.setdefault(f"{name} {like.dtype} {like.device}", [])
        # `pop` may find the list emptied by another thread after a test of its length: ask, and handle the failure.
        try:
            kept = free.pop()
        except IndexError:
            kept = None
        if kept is None or len(kept) < size:
            kept = lasting_buffer(size, like=like)
        return kept[:size].view(rows, columns)

    def give(self, name: str, taken: Tensor) -> None:
        """Make an array free again. The whole allocation is kept, also if this use of it was smaller."""
        whole = taken._base if taken._base is not None else taken
        self.free[f"{name} {taken.dtype} {taken.device}"].append(whole.flatten())


class Lease:
    """Arrays of an arena that are given back when this object is freed, as together with an autograd graph."""

    def __init__(self, arena: Arena, arrays: dict[str, Tensor]) -> None:
        self.arena, self.arrays = arena, arrays

    def __del__(self) -> None:
        for name, array in self.arrays.items():
            self.arena.give(name, array)


class Scratch(threading.local):
    """This thread's buffers, by name. Buffers are reused: a second `take` of the same name overwrites the first."""

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}

    def take(self, name: str, rows: int, columns: int) -> Tensor:
        size = rows * columns
        if size > MOST_KEPT:
            return torch.empty(rows, columns)
        if name not in self.kept or len(self.kept[name]) < size:
            self.kept[name] = lasting_buffer(size)
        return self.kept[name][:size].view(rows, columns)
