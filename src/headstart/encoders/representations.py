"""The output of every encoder: the vectors of a batch's tokens at every layer, with padding and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

StateT = TypeVar("StateT")
Layers = Sequence[int] | None
"""Numbers of the wanted layers, in the wanted order; None: all."""


@dataclass(frozen=True, slots=True)
class Representations:
    """R_0 .. R_L of one batch. layers: (K, B, T, D); mask: (B, T), True at real tokens."""

    layers: Tensor
    mask: Tensor

    def at_words(self, first_piece: Tensor, rows: Tensor | None = None) -> Representations:
        """Keep each word's first piece. first_piece: (B, W), -1 where a row has no such word.

        rows: (B, W), the sequence that holds each word, where that is not the word's own row.
        """
        K, _, T, D = self.layers.shape
        if rows is not None:
            flat = (rows * T + first_piece.clamp(min=0)).flatten()
            words = self.layers.flatten(1, 2).index_select(1, flat).view(K, *first_piece.shape, D)
            return Representations(words, first_piece >= 0)
        index = first_piece.clamp(min=0)[None, :, :, None].expand(K, -1, -1, D)
        return Representations(self.layers.gather(2, index), first_piece >= 0)

    def to(self, device: torch.device) -> Representations:
        return Representations(self.layers.to(device), self.mask.to(device))


def chosen(states: list[StateT], layers: Layers) -> list[StateT]:
    """Those of the wanted layers."""
    return states if layers is None else [states[layer] for layer in layers]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Representations of the real tokens of a batch without padding. layers: each (N, D); starts: (B,).

    The tokens of a sequence follow each other from its start on; sequences may be in any order.
    """

    layers: list[Tensor]
    starts: Tensor

    def at(self, places: Tensor, rows: Tensor | None = None) -> Tensor:
        """The vectors at some positions, row by row. places: (B, W), -1 for none -> (K, words, D).

        rows: (B, W), the sequence of each position; by default that of its own row.
        """
        starts = self.starts[:, None] if rows is None else self.starts[rows]
        chosen = (starts + places)[places >= 0]
        return torch.stack([layer.index_select(0, chosen) for layer in self.layers])

    def padded(self, mask: Tensor) -> list[Tensor]:
        """Each (B, T, D), zero at padding. mask: (B, T), True at real tokens, which come first in every row."""
        columns = torch.arange(mask.shape[1], device=mask.device)
        rows = (self.starts[:, None] + columns)[mask]
        found = []
        for layer in self.layers:
            whole = layer.new_zeros(*mask.shape, layer.shape[-1])
            whole[mask] = layer.index_select(0, rows)
            found.append(whole)
        return found
