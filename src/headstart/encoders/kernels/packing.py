"""Padded sequences rearranged by time step, without padding, for a recurrent network of one or two directions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headstart.errors import DataError


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each token goes. Step t holds the sequences longer than t, longest first, as in torch's PackedSequence.

    index: (directions, N) of the N real tokens into B * T; direction 1 reads each sequence from its own last token.
    sizes: sequences alive at each step; shape: (B, T) of the padded batch.
    """

    index: Tensor
    sizes: list[int]
    shape: tuple[int, int]

    @staticmethod
    def of(mask: Tensor, directions: int) -> Packing:
        """mask: (B, T), True at real tokens, which come first in every row."""
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise DataError("A sequence has real tokens after padding; pad sequences at their end only.")
        B, T = mask.shape
        # Longest first, so that the sequences that have ended are always the last rows and a step is a plain slice.
        lengths, rows = mask.sum(dim=1).sort(descending=True, stable=True)
        steps = torch.arange(T, device=mask.device)[:, None]
        alive = steps < lengths  # (T, B), longest first
        start = rows * T
        forward = (start + steps)[alive]
        backward = (start + lengths - 1 - steps)[alive]
        sizes = [n for n in alive.sum(dim=1).tolist() if n]
        return Packing(torch.stack([forward, backward][:directions]), sizes, (B, T))

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (directions, N, D)."""
        return x.flatten(0, 1).index_select(0, self.index.flatten()).view(*self.index.shape, -1)

    def unpack(self, y: Tensor) -> Tensor:
        """(directions, N, D) -> (B, T, directions * D), zero at padding."""
        B, T = self.shape
        empty = y.new_zeros(B * T, y.shape[-1])
        columns = [empty.index_copy(0, index, values) for index, values in zip(self.index, y, strict=True)]
        return torch.cat(columns, dim=1).view(B, T, -1)
