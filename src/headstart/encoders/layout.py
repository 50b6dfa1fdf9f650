"""Sequences of a batch without their padding, and a batch in parts for several cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from headstart.cores import on_cores

FEW_PIECES = 64
"""A batch of fewer is not worth two threads."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the N real pieces of a (B, T) batch lie.

    index: (N,) into B * T, None where there is no padding; visible: (B, 1, 1, T), True at pieces that attention may
    look at, None for all (its kernel is quicker when there is nothing to hide).
    """

    shape: tuple[int, int]
    index: Tensor | None
    visible: Tensor | None

    @staticmethod
    def of(mask: Tensor) -> Layout:
        """mask: (B, T), True at real pieces."""
        B, T = mask.shape
        if bool(mask.all()):
            return Layout((B, T), None, None)
        return Layout((B, T), mask.flatten().nonzero().squeeze(1), mask[:, None, None, :])

    def unpad(self, x: Tensor) -> Tensor:
        """(B, T, ...) -> (N, ...)."""
        flat = x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
        return flat if self.index is None else flat.index_select(0, self.index)

    def pad(self, x: Tensor) -> Tensor:
        """(N, D) -> (B, T, D), zero at padding."""
        B, T = self.shape
        if self.index is not None:
            x = x.new_zeros(B * T, x.shape[-1]).index_copy(0, self.index, x)
        return x.view(B, T, -1)


States = list[Tensor]


def on_parts(
    states_of: Callable[[Tensor, Tensor, Tensor | None], States], ids: Tensor, mask: Tensor, segments: Tensor | None
) -> States:
    """`states_of` of a batch, in parts of about as many real pieces as each other, one for each core."""
    lengths = mask.sum(dim=1).tolist()
    cores = min(torch.get_num_threads(), len(lengths), max(1, sum(lengths) // FEW_PIECES))
    if cores < 2:
        return on_cores([partial(states_of, ids, mask, segments)])[0]
    # Longest first, so that a part needs no more columns than its own longest sequence.
    order = np.argsort(lengths, kind="stable")[::-1]
    shares = np.cumsum(np.asarray(lengths)[order]) * cores // (sum(lengths) + 1)
    parts = [torch.from_numpy(order[shares == part].copy()) for part in range(cores) if (shares == part).any()]

    def read(rows: Tensor) -> States:
        T = int(mask[rows].any(dim=0).nonzero().max()) + 1
        return states_of(ids[rows, :T], mask[rows, :T], None if segments is None else segments[rows, :T])

    found = on_cores([partial(read, rows) for rows in parts])
    joined = [state.new_zeros(*mask.shape, state.shape[-1]) for state in found[0]]
    for rows, states in zip(parts, found, strict=True):
        for whole, state in zip(joined, states, strict=True):
            whole[rows, : state.shape[1]] = state
    return joined
