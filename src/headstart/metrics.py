"""What a result is called and how it is computed: pure functions over numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]
"""What a metric counts of one example, or their sums over examples: (..., M)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A score that is a function of counts summed over examples, so that any metric can be resampled by example.

    value: summed counts (..., M) -> scores (...), where more is better and 1 is perfect.
    """

    name: str
    title: str
    counts: tuple[str, ...]
    value: Callable[[Counts], NDArray[np.float64]]

    def of(self, counts: Counts) -> float:
        """The score of some examples. counts: (N, M)."""
        return float(self.value(counts.sum(axis=0)))


def share(counts: Counts) -> NDArray[np.float64]:
    """right / all, and 0 where there is nothing."""
    return np.divide(counts[..., 0], counts[..., 1], out=np.zeros(counts.shape[:-1]), where=counts[..., 1] > 0)


def f1_of(counts: Counts) -> NDArray[np.float64]:
    """2 right / (predicted + gold), and 0 where both are nothing."""
    total = counts[..., 1] + counts[..., 2]
    return np.divide(2 * counts[..., 0], total, out=np.zeros(counts.shape[:-1]), where=total > 0)


ACCURACY = Metric("accuracy", "accuracy", ("right", "examples"), share)
F1 = Metric("f1", "F1", ("right", "predicted", "gold"), f1_of)


def perplexity(total_negative_log_likelihood: float, count: int) -> float:
    """exp of the mean negative log-likelihood; infinite where a float cannot hold it."""
    mean = total_negative_log_likelihood / count
    return math.exp(mean) if mean < 700 else math.inf


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def accuracy(gold: Iterable[Hashable], predicted: Iterable[Hashable]) -> float:
    """The share of predictions that are right."""
    right = [g == p for g, p in zip(gold, predicted, strict=True)]
    return right.count(True) / len(right)


def macro_f1(gold: Iterable[Hashable], predicted: Iterable[Hashable], classes: Iterable[Hashable]) -> float:
    """The mean of each class's F1 = 2 right / (gold + predicted), over the classes that occur in either."""
    golds, predictions = list(gold), list(predicted)
    right = Counter(g for g, p in zip(golds, predictions, strict=True) if g == p)
    either = Counter(golds) + Counter(predictions)
    return mean([2 * right[c] / either[c] for c in classes if either[c]])


def by_class(
    gold: Iterable[Hashable], predicted: Iterable[Hashable], classes: Iterable[Hashable]
) -> list[dict[str, float]]:
    """Precision, recall, F1 and the number of gold examples of each class; 0 where a share would be of nothing."""
    golds, predictions = list(gold), list(predicted)
    right = Counter(g for g, p in zip(golds, predictions, strict=True) if g == p)
    wanted, given = Counter(golds), Counter(predictions)
    return [
        {
            "precision": right[c] / given[c] if given[c] else 0.0,
            "recall": right[c] / wanted[c] if wanted[c] else 0.0,
            "f1": 2 * right[c] / (wanted[c] + given[c]) if wanted[c] + given[c] else 0.0,
            "examples": wanted[c],
        }
        for c in classes
    ]
