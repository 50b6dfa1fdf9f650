"""What every encoder returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
