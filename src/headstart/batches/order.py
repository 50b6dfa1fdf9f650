"""Seeds, and a shuffled order that needs no memory: item i of a permutation is computed, not looked up."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

ROUNDS = 6


def seed_of(*parts: int | str) -> int:
    """A 63-bit seed from a run's seed and what it is for. Equal parts, equal seed, on every machine."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


class Permutation:
    """A bijection on range(n): a Feistel network over the next even power of two, walked until it lands inside.

    A run that was killed finds its place in the data by evaluating this at one index, whatever the corpus' size.
    """

    def __init__(self, n: int, *seed: int | str) -> None:
        if n < 1:
            raise ValueError(f"a permutation needs at least one item; got {n}")
        self.n = n
        self.half = max(1, ((n - 1).bit_length() + 1) // 2)
        self.mask = np.uint64((1 << self.half) - 1)
        keys = np.random.default_rng(seed_of(*seed)).integers(0, 2**63, size=ROUNDS, dtype=np.uint64)
        self.keys = list(keys)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> int:
        return int(self.take(np.array([index]))[0])

    def take(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The items at many indices at once."""
        if len(indices) and (indices.min() < 0 or indices.max() >= self.n):
            raise IndexError(f"a permutation of {self.n} items has no index {indices.min()}..{indices.max()}")
        items = self._scramble(indices.astype(np.uint64))
        # The domain is at most four times n, so a walk is a few steps long on average.
        while (outside := items >= self.n).any():
            items[outside] = self._scramble(items[outside])
        return items.astype(np.int64)

    def _scramble(self, x: NDArray[np.uint64]) -> NDArray[np.uint64]:
        half = np.uint64(self.half)
        left, right = x >> half, x & self.mask
        for key in self.keys:
            left, right = right, left ^ (mix(right ^ key) & self.mask)
        return (left << half) | right


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser: every input bit reaches every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
