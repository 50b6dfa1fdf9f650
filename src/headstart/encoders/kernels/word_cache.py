"""Word vectors of the character network that need not be computed again: given ones, and those of earlier batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headstart.encoders.kernels.memory import lasting_buffer

HASH_BASE = 0x5851F42D4C957F2D
"""An odd number with bits all over, the multiplier of Knuth's MMIX generator: its powers never become 0 modulo 2^64."""
MOST_BYTES = 64_000_000
FIRST_ROWS = 4_096
Versions = tuple[tuple[int, int], ...]
"""Of each weight tensor, its address and how often it was changed."""


def hashes_of(rows: Tensor) -> Tensor:
    """A polynomial hash of each row: (N, C) ids -> (N,), modulo 2^64."""
    powers = torch.full((rows.shape[1],), HASH_BASE, device=rows.device).cumprod(0)
    return (rows * powers).sum(dim=1)


class FixedWords(nn.Module):
    """Given vectors of words, looked up by their characters. A module, so that it moves to the network's device."""

    characters: Tensor
    vectors: Tensor
    hashes: Tensor

    def __init__(self, characters: Tensor, vectors: Tensor) -> None:
        super().__init__()
        # Sorted by hash, so that a lookup of many words is one vectorised binary search.
        hashes, order = hashes_of(characters).sort(stable=True)
        parts = {"characters": characters[order], "vectors": vectors[order], "hashes": hashes}
        for name, part in parts.items():
            self.register_buffer(name, part, persistent=False)

    def look_up(self, characters: Tensor) -> tuple[Tensor, Tensor]:
        """characters: (U, C) -> which of them are known, (U,), and the vectors of those, (known, P).

        Of two words with the same hash only the first is found; the other counts as unknown.
        """
        place = torch.searchsorted(self.hashes, hashes_of(characters)).clamp(max=len(self.hashes) - 1)
        known = (self.characters[place] == characters).all(dim=1)
        return known, self.vectors[place[known]]


class WordCache:
    """Vectors that a network computed before. They are valid as long as its weights stay the same.

    A full cache is emptied as a whole: frequent words are back soon, and no order of use has to be kept.
    """

    def __init__(self, weights: Versions = ()) -> None:
        self.weights = weights
        self.lock = threading.Lock()
        self.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> WordCache:
        return WordCache()

    def clear(self) -> None:
        self.place_of: dict[int, int] = {}
        self.characters = torch.empty(0, 0)
        self.vectors = torch.empty(0, 0)

    def vectors_of(self, characters: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """characters: (U, C), no word twice -> (U, P), calling `compute` for the words that are not cached."""
        short = characters.to(torch.int16)  # ids are below 262; int64 would take four times the memory
        with self.lock:
            # A dictionary from hash to row grows with every batch, where sorted hashes would have to be sorted again.
            hashes = hashes_of(characters).tolist()
            place = torch.tensor([self.place_of.get(key, -1) for key in hashes], device=characters.device)
            if not len(self.characters):
                new = torch.arange(len(hashes), device=characters.device)
            else:
                # Equal hashes are not proof: the spelling is compared too. Of two words with one hash only the later is
                # in the cache.
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
        # The arrays double when they are full, so that growing costs each word a constant time.
        if n + len(hashes) > len(self.vectors):
            room = min(most, max(FIRST_ROWS, 2 * (n + len(hashes))))
            old = self.characters[:n], self.vectors[:n]
            self.characters, self.vectors = (
                lasting_buffer(room, new.shape[1], like=new) for new in (characters, vectors)
            )
            if n:
                self.characters[:n], self.vectors[:n] = old
        for place, key in enumerate(hashes, start=n):
            self.place_of[key] = place
        self.characters[n : n + len(hashes)] = characters
        self.vectors[n : n + len(hashes)] = vectors
