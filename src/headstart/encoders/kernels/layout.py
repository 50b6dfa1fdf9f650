"""A batch without its padding, and a batch in parts for several cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from headstart.cores import on_cores
from headstart.encoders.representations import Tokens

FEW_PIECES = 64
"""Starting a second thread costs more than it saves on a batch with fewer pieces."""
PART_PIECES = 1_024
"""Pieces per part, about: enough for matrix products at full speed, few enough to stay in the core's cache."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the N real pieces of a (B, T) batch are.

    index: (N,) into B * T, None where there is no padding. visible: (B, 1, 1, T), True at pieces that attention may
    look at, None if all are: attention is faster without a mask.
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


StatesOf = Callable[..., list[Tensor]]
"""ids, mask, others -> states of the real pieces, each (N, D), sequence after sequence."""


def on_parts(states_of: StatesOf, ids: Tensor, mask: Tensor, *others: Tensor | None) -> Tokens:
    """Run `states_of` on parts of a batch, which have about equally many real pieces, on all cores.

    mask: True at real pieces, which come first in every row. others: further inputs, (B, T) each.
    """
    lengths = mask.sum(dim=1)
    total = int(lengths.sum())
    count = 1 if ids.device.type != "cpu" else min(torch.get_num_threads(), len(lengths), max(1, total // FEW_PIECES))
    # With several parts per core, a core that is slowed down by other programs leaves more of them to the others.
    if count > 1:
        count = min(count * max(1, round(total / (count * PART_PIECES))), len(lengths))
    # Longest first: a part then holds sequences of similar length, and is cut to the length of its own longest one.
    lengths, order = lengths.sort(descending=True, stable=True)
    ends = lengths.cumsum(0)
    # A sequence goes to the part that its last piece falls into when all pieces are divided evenly.
    shares = (ends - 1).clamp(min=0) * count // max(1, total)
    parts = [order[shares == part] for part in range(count)]

    def read(rows: Tensor) -> list[Tensor]:
        T = max(1, int(mask[rows].sum(dim=1).max()))
        own = [None if other is None else other[rows, :T] for other in others]
        return states_of(ids[rows, :T], mask[rows, :T], *own)

    found = on_cores([partial(read, rows) for rows in parts if len(rows)])
    # The parts follow each other in sorted order; starts are given back in the order of the batch.
    starts = torch.empty_like(ends).scatter_(0, order, ends - lengths)
    return Tokens([torch.cat(states) if len(states) > 1 else states[0] for states in zip(*found, strict=True)], starts)
