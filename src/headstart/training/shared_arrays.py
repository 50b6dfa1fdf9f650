"""Arrays in memory that all processes of one machine see, and their sum without a network between them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

FOLDER = Path("/dev/shm")
"""Files here are memory. Linux has it; containers often give it 64 MB only."""
PAGE = 4096


class SharedArray:
    """One array of this process, and the same one of every other process on its machine."""

    def __init__(self, arrays: list[Tensor], rank: int, barrier: Callable[[], object]) -> None:
        """arrays: by rank. barrier: returns in no process before all have called it."""
        self.arrays, self.mine, self.barrier = arrays, arrays[rank], barrier
        ends = [len(self.mine) * place // len(arrays) for place in range(len(arrays) + 1)]
        self.slices = [slice(first, last) for first, last in pairwise(ends)]
        self.rank = rank

    def sum_(self) -> None:
        """Replace everybody's array by the sum of all: each process sums one slice, and copies those of the others.

        The others may still copy from this process's array when it returns: it is not to be written before another
        exchange with all of them.
        """
        self.barrier()
        own = self.slices[self.rank]
        first, *others = [array[own] for array in self.arrays]
        total = first.clone() if self.rank else first  # in the order of the ranks, so into the first one's
        for other in others:
            total += other
        self.mine[own] = total
        self.barrier()
        for rank, part in enumerate(self.slices):
            if rank != self.rank:
                self.mine[part] = self.arrays[rank][part]


def shared_array(
    numbers: int, like: Tensor, name: str, rank: int, world: int, all_could: Callable[[bool], bool]
) -> list[Tensor] | None:
    """The arrays of all processes, by rank, or None in all of them if there is no room for that of one.

    name: of this array, the same in all processes, and new. all_could: whether all processes called it with True.
    """
    files = [FOLDER / f"{name}-{each}" for each in range(world)]
    size = max(PAGE, numbers * like.element_size())
    arrays: list[Tensor] | None = None
    try:
        if all_could(reserved(files[rank], size)):
            try:
                arrays = [mapped(file, numbers, like) for file in files]
            except (OSError, RuntimeError):  # one of them is in another container
                arrays = None
            if not all_could(arrays is not None):
                arrays = None
    finally:
        files[rank].unlink(missing_ok=True)  # what is mapped stays until the last process is gone
    return arrays


def reserved(file: Path, size: int) -> bool:
    """Whether the file has its memory. Without it, the first write beyond what there is would end the process."""
    try:
        with file.open("xb") as opened:
            os.posix_fallocate(opened.fileno(), 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.ENOMEM, errno.ENOENT, errno.EACCES, errno.EDQUOT, errno.EROFS):
            return False
        raise
    except AttributeError:  # systems other than Linux
        return False
    return True


def mapped(file: Path, numbers: int, like: Tensor) -> Tensor:
    if not file.is_file():
        raise OSError(f"{file} is not there")
    return torch.from_file(str(file), shared=True, size=numbers, dtype=like.dtype)
