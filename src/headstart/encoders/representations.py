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

    def at_words(self, first_piece: Tensor) -> Representations:
        """Keep each word's first piece. first_piece: (B, W), -1 where a row has no such word."""
        K, _, _, D = self.layers.shape
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

    def at(self, places: Tensor) -> Tensor:
        """The vectors at some positions, sequence by sequence. places: (B, W), -1 for none -> (K, words, D)."""
        rows = (self.starts[:, None] + places)[places >= 0]
        return torch.stack([layer.index_select(0, rows) for layer in self.layers])

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
