"""Spearman's rho by hand and against scipy; its interval against rounds that are ranked one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from headstart.comparison.significance import by_index
from headstart.inspection import rank_correlation
from headstart.inspection.rank_correlation import spearman, spearman_intervals


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 1_000], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [2, 1, 4, 3], 0.6),  # 1 - 6 * 4 / (4 * 15)
        ([1, 2, 2, 3], [1, 2, 3, 4], 4.5 / math.sqrt(4.5 * 5)),  # ranks 1, 2.5, 2.5, 4
        ([5, 5, 5, 1], [7, 7, 1, 1], 2 / math.sqrt(3 * 4)),  # ranks 3, 3, 3, 1 and 3.5, 3.5, 1.5, 1.5
    ],
)
def test_by_hand(a: list[float], b: list[float], rho: float) -> None:
    assert spearman(np.array(a, float), np.array(b, float)) == pytest.approx(rho)


def test_equal_values_rank_nothing() -> None:
    assert math.isnan(spearman(np.ones(4), np.arange(4.0)))


@pytest.mark.parametrize("digits", [0, 1, 8])
def test_as_scipy_with_many_ties_and_few(digits: int) -> None:
    rng = np.random.default_rng(digits)
    a = rng.normal(size=80).round(digits)
    b = (a + rng.normal(size=80)).round(digits)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


def test_the_interval_is_that_of_rounds_ranked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_correlation, "NUMBERS_AT_ONCE", 300)  # ten rounds at once
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 6, size=30).astype(float)
    rankings = np.stack([gold + rng.normal(size=30).round(1), rng.normal(size=30)])
    found = spearman_intervals(rankings, gold, seed=5, rounds=40)
    draws = np.random.default_rng(5)
    rounds = np.concatenate([by_index(draws, np.ones(30, np.int64), 10) for _ in range(4)])
    for values, interval in zip(rankings, found, strict=True):
        rhos = []
        for times in rounds.astype(int):
            drawn = np.repeat(np.arange(30), times)
            rhos.append(spearmanr(values[drawn], gold[drawn]).statistic)
        assert interval == pytest.approx(tuple(np.quantile(rhos, [0.025, 0.975])), abs=1e-12)


def test_rounds_without_a_ranking_do_not_count() -> None:
    """Of two pairs, every second round draws one of them twice."""
    assert spearman_intervals(np.array([[0.1, 0.2]]), np.array([1.0, 2.0])) == [(1.0, 1.0)]
