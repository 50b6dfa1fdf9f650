"""How certain a score is, and which difference is more than chance: a bootstrap over seeds and dev examples.

A score is a function of counts summed over examples, so every metric is resampled the same way.
Letters: S seeds, N dev examples, M counts of the metric, U distinct examples, R rounds of the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headstart.metrics import Counts, Metric, share

ROUNDS = 2000
LARGEST_BLOCK = 2_000_000  # numbers drawn at once, 32 MB; many seeds and examples would need gigabytes
Value = Callable[[Counts], NDArray[np.float64]]
"""Of summed counts, (..., M) -> (...)."""
MANY = 500  # distinct examples, beyond which a number for each costs more than drawing the examples one by one


def interval(counts: Counts, metric: Metric, seed: int = 0, rounds: int = ROUNDS) -> tuple[float, float]:
    """The 95 % bootstrap interval of the score of `counts` (S, N, M), resampling both seeds and dev examples."""
    low, high = np.quantile(resampled(counts, metric.value, seed, rounds), [0.025, 0.975])
    return float(low), float(high)


def paired(a: Counts, b: Counts, metric: Metric, seed: int = 0, rounds: int = ROUNDS) -> tuple[float, float]:
    """The difference of the scores (b - a) and its two-sided p, from the same resampled seeds and examples in both.

    a, b: (S, N, M). p is never 0: what was observed counts as one more round. Swapping a and b changes the sign only.
    """
    value, forward = gained(a, b, metric)
    difference = float(value(forward.sum(axis=(0, 1))))
    if difference == 0.0:
        return 0.0, 1.0
    upwards = forward if difference > 0 else gained(b, a, metric)[1]
    against = int((resampled(upwards, value, seed, rounds) <= 0.0).sum())
    return difference, min(1.0, 2 * (against + 1) / (rounds + 1))


def paired_interval(a: Counts, b: Counts, metric: Metric, seed: int = 0, rounds: int = ROUNDS) -> tuple[float, float]:
    """The 95 % interval of the difference that `paired` gives, from the same resampled seeds and examples."""
    value, forward = gained(a, b, metric)
    low, high = np.quantile(resampled(forward, value, seed, rounds), [0.025, 0.975])
    return float(low), float(high)


def error_reduction(
    a: Counts, b: Counts, metric: Metric, seed: int = 0, rounds: int = ROUNDS
) -> tuple[float, tuple[float, float]]:
    """The share of a's error that b does not make, and its 95 % interval, from the same seeds and examples in both.

    a, b: (S, N, M). An error is 1 less the score; of no error, nothing is left to reduce: 0.
    """
    M = len(metric.counts)

    def share_of_error(counts: Counts) -> NDArray[np.float64]:
        before, after = metric.value(counts[..., :M]), metric.value(counts[..., M:])
        return np.divide(after - before, 1 - before, out=np.zeros(np.shape(before)), where=before < 1)

    both = np.concatenate([a, b], -1)
    low, high = np.quantile(resampled(both, share_of_error, seed, rounds), [0.025, 0.975])
    return float(share_of_error(both.sum(axis=(0, 1)))), (float(low), float(high))


def gained(a: Counts, b: Counts, metric: Metric) -> tuple[Value, Counts]:
    """Counts of what b has more than a, (S, N, M or 2M), and the function of their sums that gives the difference."""
    if a.shape != b.shape:
        raise ValueError(f"both must have the same seeds, examples and counts; got {a.shape} and {b.shape}")
    if metric.value is share and np.array_equal(a[..., 1], b[..., 1]):
        # Shares of the same wholes differ by the share that was gained: one pair of counts in place of two, and
        # whole numbers until the last division, so that no gain at all is exactly 0.
        return share, np.stack([b[..., 0] - a[..., 0], a[..., 1]], -1)
    return gain_of(metric), np.concatenate([a, b], -1)


def gain_of(metric: Metric) -> Value:
    """Of counts (..., 2M), the later half's score less the earlier half's."""
    M = len(metric.counts)
    return lambda counts: metric.value(counts[..., M:]) - metric.value(counts[..., :M])


def resampled(counts: Counts, value: Value, seed: int, rounds: int) -> NDArray[np.float64]:
    """The value of the summed `counts` (S, N, M) under draws of S seeds and N examples with replacement: (R,).

    Examples with equal counts in every seed cannot be told apart, so drawing how often each distinct one occurs
    gives the same distribution; there are far fewer of those than examples.
    """
    rng = np.random.default_rng(seed)
    S, N, M = counts.shape
    distinct, occurs = distinct_rows(counts.transpose(1, 0, 2).reshape(N, S * M))
    # A share keeps the first way for any number of distinct examples, so that its figures never change.
    draw, drawn_at_once = (by_index, N) if len(occurs) > MANY and value is not share else (by_row, len(occurs))
    block = max(1, LARGEST_BLOCK // drawn_at_once)
    totals: Counts = np.empty((rounds, M))
    for start in range(0, rounds, block):
        size = min(block, rounds - start)
        of_examples = draw(rng, occurs, size)
        of_seeds = rng.multinomial(S, np.full(S, 1 / S), size=size)  # (size, S)
        by_seed = (of_examples @ distinct).reshape(size, S, M)
        totals[start : start + size] = (by_seed * of_seeds[..., None]).sum(axis=1)
    return value(totals)


def distinct_rows(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The distinct rows in lexicographic order (U, C) and how often each occurs (U,).

    np.unique gives the same, but compares rows as records, which takes ten times as long.
    """
    ordered = values[np.lexsort(values.T[::-1])]
    begins = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    return ordered[begins], np.diff(np.r_[begins, len(values)])


def by_row(rng: np.random.Generator, occurs: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """How often each distinct example is drawn in each of `size` rounds (size, U): one number for each of them."""
    N = occurs.sum()
    return rng.multinomial(N, occurs / N, size=size).astype(np.float64)


def by_index(rng: np.random.Generator, occurs: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The same distribution, drawing example by example: quicker where nearly all of them are distinct."""
    N, U = int(occurs.sum()), len(occurs)
    row_of = np.repeat(np.arange(U), occurs)
    drawn = row_of[rng.integers(N, size=(size, N))] + U * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * U).reshape(size, U).astype(np.float64)
