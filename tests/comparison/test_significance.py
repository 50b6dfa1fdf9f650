from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.comparison.significance import (
    by_index,
    by_row,
    distinct_rows,
    error_reduction,
    interval,
    paired,
    paired_interval,
    resampled,
)
from headstart.metrics import ACCURACY, F1, Counts, Metric

Flags = NDArray[np.bool_]


def flags(share: float, seeds: int, examples: int, seed: int = 0) -> Flags:
    return np.random.default_rng(seed).random((seeds, examples)) < share


def right(correct: Flags) -> Counts:
    """(S, N) -> (S, N, 2): right, examples."""
    return np.stack([correct, np.ones_like(correct)], -1).astype(np.float64)


def found(seeds: int, examples: int, seed: int, hit: float = 0.7) -> Counts:
    """Counts of F1 (S, N, 3): each example has 0 to 3 gold entities, each found with probability `hit`, and others."""
    rng = np.random.default_rng(seed)
    gold = np.broadcast_to(np.random.default_rng(99).integers(0, 4, examples), (seeds, examples))
    hits = rng.binomial(gold, hit)
    return np.stack([hits, hits + rng.binomial(1, 0.3, gold.shape), gold], -1).astype(np.float64)


# Of these flags, computed when accuracy was the only metric and its means were resampled directly.
GOLDEN = [
    ((1, 40, 0), (0.525, 0.825), (0.025, 0.894552723638181), (0.575, 0.825), (0.025, 0.9169435215946844)),
    ((3, 200, 1), (0.64, 0.77), (0.055, 0.09895052473763119),
     (0.7066666666666667, 0.8166666666666667), (0.055, 0.09966777408637874)),
    ((5, 1000, 2), (0.6737949999999999, 0.7192), (0.0468, 0.00399800099950025),
     (0.721695, 0.7640199999999999), (0.0468, 0.026578073089700997)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "of_a", "between", "of_b", "short"), GOLDEN)
def test_accuracy_has_the_same_bits_as_ever(
    shape: tuple[int, int, int],
    of_a: tuple[float, float],
    between: tuple[float, float],
    of_b: tuple[float, float],
    short: tuple[float, float],
) -> None:
    seeds, examples, seed = shape
    a, b = right(flags(0.7, seeds, examples, seed)), right(flags(0.75, seeds, examples, seed + 10))
    assert interval(a, ACCURACY) == of_a
    assert paired(a, b, ACCURACY) == between
    assert paired(b, a, ACCURACY) == (-between[0], between[1])
    assert interval(b, ACCURACY, seed=3, rounds=500) == of_b
    assert paired(a, b, ACCURACY, seed=4, rounds=300) == short


def test_interval_of_f1_is_that_of_drawing_seeds_and_examples_one_by_one() -> None:
    counts = found(3, 60, 0)
    rng = np.random.default_rng(1)
    slow = [F1.of(counts[rng.integers(3, size=3)][:, rng.integers(60, size=60)].reshape(-1, 3)) for _ in range(6000)]
    fast = resampled(counts, F1.value, 0, 6000)
    assert fast.mean() == pytest.approx(np.mean(slow), abs=0.004)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.06)


def test_distinct_rows_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).integers(-1, 2, (300, 4)).astype(np.float64)
    rows, occurs = distinct_rows(values)
    expected, times = np.unique(values, axis=0, return_counts=True)
    assert (rows.tolist(), occurs.tolist()) == (expected.tolist(), times.tolist())


def test_both_ways_to_draw_examples_have_one_distribution() -> None:
    """Means N p and variances N p (1 - p) of the multinomial, and N examples in every round."""
    occurs = np.array([1, 4, 15])
    for draw in (by_row, by_index):
        drawn = draw(np.random.default_rng(0), occurs, 20_000)
        assert set(drawn.sum(axis=1)) == {20.0}
        assert drawn.mean(axis=0) == pytest.approx(occurs, rel=0.03)
        assert drawn.var(axis=0) == pytest.approx(occurs * (1 - occurs / 20), rel=0.05)


def test_paired_f1_by_hand() -> None:
    """One seed, two examples with one entity each. a finds none, b one: F1 of 0 and 2 / (1 + 2). Draws of the second
    example alone (1 in 4) show no gain."""
    a = np.array([[[0, 0, 1], [0, 0, 1]]], dtype=np.float64)
    b = np.array([[[1, 1, 1], [0, 0, 1]]], dtype=np.float64)
    difference, p = paired(a, b, F1, rounds=20_000)
    assert difference == pytest.approx(2 / 3)
    assert p == pytest.approx(0.5, abs=0.02)


def test_paired_f1_swaps_and_tells_a_gain_from_none() -> None:
    a, b = found(3, 300, 1, hit=0.6), found(3, 300, 2, hit=0.75)
    forward, backward = paired(a, b, F1), paired(b, a, F1)
    assert forward == (-backward[0], backward[1])
    assert forward[0] == pytest.approx(F1.of(b.reshape(-1, 3)) - F1.of(a.reshape(-1, 3)))
    assert forward[1] < 0.01
    assert paired(a, a.copy(), F1) == (0.0, 1.0)


def test_a_metric_of_the_same_counts_as_accuracy_gives_the_same_difference() -> None:
    """Without the short cut for shares: other draws, the same difference and about the same p."""
    plain = Metric("plain", "plain", ACCURACY.counts, lambda counts: ACCURACY.value(counts) * 1.0)
    a, b = right(flags(0.7, 3, 200, 1)), right(flags(0.75, 3, 200, 11))
    (short, p), (long, q) = paired(a, b, ACCURACY, rounds=20_000), paired(a, b, plain, rounds=20_000)
    assert long == pytest.approx(short)
    assert q == pytest.approx(p, rel=0.15)


def test_error_reduction_by_hand() -> None:
    """Of 10 examples a has 5 right and b those and 2 others: 2 of 5 errors are gone. A draw has any number of them."""
    a, b = (right(np.arange(10)[None] < n) for n in (5, 7))
    share, (low, high) = error_reduction(a, b, ACCURACY)
    assert share == pytest.approx(0.4)
    assert 0 <= low < 0.4 < high <= 1
    assert error_reduction(b, a, ACCURACY)[0] == pytest.approx(-2 / 3)


def test_error_reduction_has_the_sign_of_the_difference() -> None:
    a, b = found(3, 300, 1, hit=0.6), found(3, 300, 2, hit=0.75)
    share, (low, high) = error_reduction(a, b, F1)
    assert share == pytest.approx(paired(a, b, F1)[0] / (1 - F1.of(a.reshape(-1, 3))))
    assert 0 < low < share < high
    assert error_reduction(a, a.copy(), F1) == (0.0, (0.0, 0.0))


def test_where_there_is_no_error_none_is_reduced() -> None:
    perfect, other = right(np.ones((2, 10), dtype=bool)), right(flags(0.5, 2, 10))
    assert error_reduction(perfect, other, ACCURACY) == (0.0, (0.0, 0.0))


def test_interval_of_a_constant_is_a_point() -> None:
    assert interval(right(np.ones((3, 10), dtype=bool)), ACCURACY) == (1.0, 1.0)
    assert interval(right(np.zeros((3, 10), dtype=bool)), ACCURACY) == (0.0, 0.0)


def test_interval_of_one_seed_is_the_binomial_one() -> None:
    correct = np.arange(400)[None] < 320  # 0.8 of 400: the normal interval is 0.8 +- 1.96 * 0.02
    low, high = interval(right(correct), ACCURACY, rounds=20_000)
    assert low == pytest.approx(0.8 - 1.96 * 0.02, abs=0.004)
    assert high == pytest.approx(0.8 + 1.96 * 0.02, abs=0.004)


def test_interval_spreads_with_the_seeds() -> None:
    """Two seeds, one always right and one always wrong: means of 0, 1/2 and 1 in the ratio 1 : 2 : 1."""
    correct = np.array([[True] * 50, [False] * 50])
    means = resampled(right(correct), ACCURACY.value, 0, 20_000)
    assert set(np.round(means, 9)) == {0.0, 0.5, 1.0}
    assert np.mean(np.isclose(means, 0.5)) == pytest.approx(0.5, abs=0.02)


def test_interval_distinct_columns_stand_for_their_examples() -> None:
    """The same spread as drawing the examples one by one."""
    correct = flags(0.7, 3, 60)
    rng = np.random.default_rng(1)
    slow = [correct[rng.integers(3, size=3)][:, rng.integers(60, size=60)].mean() for _ in range(8000)]
    fast = resampled(right(correct), ACCURACY.value, 0, 8000)
    assert fast.mean() == pytest.approx(np.mean(slow), abs=0.004)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.05)


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Examples differ in how hard they are, the same for every seed: what a dev set is like."""
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(200):
        hardness = rng.beta(4, 1, size=150)  # true mean 0.8
        correct = rng.random((5, 150)) < hardness
        low, high = interval(right(correct), ACCURACY, seed=trial, rounds=300)
        hits += low <= 0.8 <= high
    assert 0.90 <= hits / 200 <= 1.0


def test_interval_repeats_itself() -> None:
    counts = right(flags(0.6, 4, 50))
    assert interval(counts, ACCURACY, seed=3) == interval(counts, ACCURACY, seed=3)


def test_paired_swapping_turns_the_sign_only() -> None:
    a, b = flags(0.7, 4, 80, seed=1), flags(0.75, 4, 80, seed=2)
    forward, backward = paired(right(a), right(b), ACCURACY), paired(right(b), right(a), ACCURACY)
    assert forward == (-backward[0], backward[1])
    assert forward[0] == pytest.approx(b.mean() - a.mean())


def test_paired_equal_rows_do_not_differ() -> None:
    a = right(flags(0.7, 3, 40))
    assert paired(a, a.copy(), ACCURACY) == (0.0, 1.0)


def test_paired_p_is_never_zero() -> None:
    difference, p = paired(
        right(np.zeros((2, 30), dtype=bool)), right(np.ones((2, 30), dtype=bool)), ACCURACY, rounds=99
    )
    assert difference == 1.0
    assert p == pytest.approx(2 / 100)


def test_paired_counts_rounds_against_it() -> None:
    """One seed, two examples, a gain in one: both draws miss it with probability 1/4, so p is about 1/2."""
    _, p = paired(right(np.array([[False, True]])), right(np.array([[True, True]])), ACCURACY, rounds=20_000)
    assert p == pytest.approx(0.5, abs=0.02)


def test_paired_pairs_examples() -> None:
    """A gain of 2 points that every example agrees on is sure, though each interval is wide."""
    a = np.tile(np.arange(200) < 140, (3, 1))
    b = np.tile(np.arange(200) < 150, (3, 1))
    assert interval(right(a), ACCURACY)[1] > b.mean()
    assert paired(right(a), right(b), ACCURACY)[1] < 0.01


def test_paired_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match="same seeds, examples"):
        paired(np.zeros((2, 3, 2)), np.zeros((2, 4, 2)), ACCURACY)


@pytest.mark.parametrize(("metric", "a", "b"), [
    (ACCURACY, right(flags(0.6, 3, 200)), right(flags(0.8, 3, 200, seed=5))),
    (F1, found(3, 200, 0, hit=0.5), found(3, 200, 1, hit=0.9)),
])  # fmt: skip
def test_the_interval_of_a_difference_holds_it_and_leaves_out_zero_where_p_is_small(
    metric: Metric, a: Counts, b: Counts
) -> None:
    difference, p = paired(a, b, metric)
    low, high = paired_interval(a, b, metric)
    assert low < difference < high
    assert p < 0.01
    assert low > 0
    assert paired_interval(a, a, metric) == (0.0, 0.0)
    same_seed_backwards = paired_interval(b, a, metric)
    assert same_seed_backwards == pytest.approx((-high, -low), abs=0.02)
