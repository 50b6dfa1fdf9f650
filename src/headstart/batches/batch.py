"""What one pretraining step reads. A batch knows what each of its losses sums over before the model has run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class LanguageModelBatch:
    """Sentences with their marks, <S> w1 .. wn </S>, padded at the end.

    characters: (B, T, C) ids, 0 in padding; mask: (B, T), True at real tokens; targets: (B, T) word ids of all tokens.
    """

    characters: Tensor
    mask: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> LanguageModelBatch:
        return LanguageModelBatch(self.characters.to(device), self.mask.to(device), self.targets.to(device))

    def counts(self) -> dict[str, int]:
        """Targets per direction: every token but the first (forward) or but the last (backward) of its sentence."""
        pairs = int((self.mask[:, 1:] & self.mask[:, :-1]).sum())
        return {"forward": pairs, "backward": pairs}

    def parts(self, n: int) -> list[LanguageModelBatch]:
        """Undivided: its two directions are for two cores already."""
        return [self]


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """[CLS] A [SEP] B [SEP] with some pieces hidden.

    ids, mask, segments: (B, T); positions: (M,) of the hidden pieces, flat into B * T; gold: (M,) the hidden ids;
    is_next: (B,), True where B follows A in the text, or None when that task is off.
    """

    ids: Tensor
    mask: Tensor
    segments: Tensor
    positions: Tensor
    gold: Tensor
    is_next: Tensor | None

    def to(self, device: torch.device) -> MaskedBatch:
        return MaskedBatch(
            self.ids.to(device),
            self.mask.to(device),
            self.segments.to(device),
            self.positions.to(device),
            self.gold.to(device),
            None if self.is_next is None else self.is_next.to(device),
        )

    def counts(self) -> dict[str, int]:
        counts = {"masked": len(self.gold)}
        if self.is_next is not None:
            counts["next"] = len(self.is_next)
        return counts

    def parts(self, n: int) -> list[MaskedBatch]:
        """Its sequences in n batches of like size, for as many cores; fewer if there are fewer sequences."""
        B, T = self.ids.shape
        bounds = sorted({B * part // n for part in range(n + 1)})
        return [self._rows(first, last, T) for first, last in pairwise(bounds)]

    def _rows(self, first: int, last: int, T: int) -> MaskedBatch:
        mine = (self.positions >= first * T) & (self.positions < last * T)
        return MaskedBatch(
            self.ids[first:last],
            self.mask[first:last],
            self.segments[first:last],
            self.positions[mine] - first * T,
            self.gold[mine],
            None if self.is_next is None else self.is_next[first:last],
        )
