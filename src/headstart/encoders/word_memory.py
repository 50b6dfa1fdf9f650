"""Vectors of words that need not be computed again: those that were given, and those of earlier batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

HASH_BASE = 0x5851F42D4C957F2D
MOST_BYTES = 64_000_000
FIRST_ROOM = 4_096
Versions = tuple[tuple[int, int], ...]
"""Where each tensor of the weights lies, and how often it was changed."""


def hashes_of(rows: Tensor) -> Tensor:
    """(N, C) ids -> (N,), modulo 2^64."""
    powers = torch.full((rows.shape[1],), HASH_BASE, device=rows.device).cumprod(0)
    return (rows * powers).sum(dim=1)


class RememberedWords(nn.Module):
    """Vectors of words, found by their characters. A module so that they follow the network to its device."""

    characters: Tensor
    vectors: Tensor
    hashes: Tensor

    def __init__(self, characters: Tensor, vectors: Tensor) -> None:
        super().__init__()
        hashes, order = hashes_of(characters).sort(stable=True)
        parts = {"characters": characters[order], "vectors": vectors[order], "hashes": hashes}
        for name, part in parts.items():
            self.register_buffer(name, part, persistent=False)

    def look_up(self, characters: Tensor) -> tuple[Tensor, Tensor]:
        """characters: (U, C) -> which of them are known, (U,), and the vectors of those, (known, P).

        Of two words with one hash only the first is ever found; the other counts as unknown.
        """
        place = torch.searchsorted(self.hashes, hashes_of(characters)).clamp(max=len(self.hashes) - 1)
        known = (self.characters[place] == characters).all(dim=1)
        return known, self.vectors[place[known]]


class RecentWords:
    """Vectors that a network computed lately: a word costs it once, while its weights stay as they are.

    When it is full it begins anew: the frequent words are soon back, and what a text needs changes as it goes on.
    """

    def __init__(self, weights: Versions = ()) -> None:
        self.weights = weights
        self.lock = threading.Lock()
        self.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> RecentWords:
        return RecentWords()

    def clear(self) -> None:
        self.place_of: dict[int, int] = {}
        self.characters = torch.empty(0, 0)
        self.vectors = torch.empty(0, 0)

    def vectors_of(self, characters: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """characters: (U, C), no word twice -> (U, P), asking `compute` for the words that are not known yet."""
        short = characters.to(torch.int16)
        with self.lock:
            hashes = hashes_of(characters).tolist()
            place = torch.tensor([self.place_of.get(key, -1) for key in hashes], device=characters.device)
            if not len(self.characters):
                new = torch.arange(len(hashes), device=characters.device)
            else:
                # Of two words with one hash only the later is known.
                same = (self.characters[place.clamp(min=0)] == short).all(dim=1)
                new = ((place < 0) | ~same).nonzero().squeeze(1)
            if not len(new):
                return self.vectors[place]
            computed = compute(characters[new])
            found = computed.new_empty(len(hashes), computed.shape[1])
            known = torch.ones(len(hashes), dtype=torch.bool, device=characters.device)
            known[new] = False
            if len(new) < len(hashes):
                found[known] = self.vectors[place[known]]
            found[new] = computed
            self._add([hashes[i] for i in new.tolist()], short[new], computed)
            return found

    def _add(self, hashes: list[int], characters: Tensor, vectors: Tensor) -> None:
        most = max(len(hashes), MOST_BYTES // (vectors[:1].nbytes + characters[:1].nbytes))
        if len(self.place_of) + len(hashes) > most:
            self.clear()
        n = len(self.place_of)
        if n + len(hashes) > len(self.vectors):
            room = min(most, max(FIRST_ROOM, 2 * (n + len(hashes))))
            old = self.characters[:n], self.vectors[:n]
            self.characters, self.vectors = (new.new_zeros(room, new.shape[1]) for new in (characters, vectors))
            if n:
                self.characters[:n], self.vectors[:n] = old
        for place, key in enumerate(hashes, start=n):
            self.place_of[key] = place
        self.characters[n : n + len(hashes)] = characters
        self.vectors[n : n + len(hashes)] = vectors
