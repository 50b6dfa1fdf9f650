"""What a result is called and how it is computed: pure functions over numbers."""

from __future__ import annotations

import math


def perplexity(total_negative_log_likelihood: float, count: int) -> float:
    """exp of the mean negative log-likelihood; infinite where a float cannot hold it."""
    mean = total_negative_log_likelihood / count
    return math.exp(mean) if mean < 700 else math.inf


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
