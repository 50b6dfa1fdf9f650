"""Spearman's rho: the correlation of ranks, of which equal values share their mean; and its bootstrap interval.

Letters: N examples, K rankings, R rounds of the bootstrap, G distinct values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headstart.comparison.significance import ROUNDS, by_index

Array = NDArray[np.float64]
NUMBERS_AT_ONCE = 500_000
"""Of (R, N): a few such arrays are held, of 4 MB each."""


def spearman(a: Array, b: Array) -> float:
    """Of two rankings (N,); nan where all values of one are equal, which is no ranking."""
    once = np.ones((1, len(a)))
    return float(correlation(Ranking(a).ranks(once), Ranking(b).ranks(once), once)[0])


def spearman_intervals(rankings: Array, gold: Array, seed: int = 0, rounds: int = ROUNDS) -> list[tuple[float, float]]:
    """The 95 % interval of each ranking's rho with gold, from the same rounds. rankings: (K, N); gold: (N,).

    Each round draws N examples with replacement and ranks them anew. A round whose examples are all equal has no rho
    and does not count.
    """
    N = len(gold)
    rng = np.random.default_rng(seed)
    ranked, ranked_gold = [Ranking(values) for values in rankings], Ranking(gold)
    block = max(1, NUMBERS_AT_ONCE // N)
    found: list[Array] = []
    for start in range(0, rounds, block):
        drawn = by_index(rng, np.ones(N, np.int64), min(block, rounds - start))
        gold_ranks = ranked_gold.ranks(drawn)
        found.append(np.stack([correlation(one.ranks(drawn), gold_ranks, drawn) for one in ranked]))
    low, high = np.nanquantile(np.concatenate(found, axis=1), [0.025, 0.975], axis=1)
    return list(zip(low.tolist(), high.tolist(), strict=True))


class Ranking:
    """Values in order, once for all rounds: drawing examples changes their ranks, not their order."""

    def __init__(self, values: Array) -> None:
        distinct, self.group = np.unique(values, return_inverse=True)
        self.order = np.argsort(self.group, kind="stable")
        self.begins = np.searchsorted(self.group[self.order], np.arange(len(distinct)))

    def ranks(self, drawn: Array) -> Array:
        """Of each example, from 1 on. drawn: (R, N), how often each occurs in each round -> (R, N)."""
        equal = np.add.reduceat(drawn[:, self.order], self.begins, axis=1)  # (R, G)
        before = equal.cumsum(axis=1) - equal
        ranks: Array = (before + (equal + 1) / 2)[:, self.group]
        return ranks


def correlation(a: Array, b: Array, drawn: Array) -> Array:
    """Pearson's, of the ranks in each round: (R,). a, b, drawn: (R, N), each row of `drawn` summing to N."""
    N = drawn.shape[1]
    middle = (N + 1) / 2
    a, b = a - middle, b - middle
    covariance, own, other = ((drawn * x * y).sum(axis=1) for x, y in ((a, b), (a, a), (b, b)))
    both = np.sqrt(own * other)
    rho: Array = np.divide(covariance, both, out=np.full(len(drawn), np.nan), where=both > 0)
    return rho
