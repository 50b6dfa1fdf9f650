from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.comparison.significance import interval, labels_needed, paired, resampled_means, summarise

Flags = NDArray[np.bool_]


def flags(share: float, seeds: int, examples: int, seed: int = 0) -> Flags:
    return np.random.default_rng(seed).random((seeds, examples)) < share


def test_interval_of_a_constant_is_a_point() -> None:
    assert interval(np.ones((3, 10), dtype=bool)) == (1.0, 1.0)
    assert interval(np.zeros((3, 10), dtype=bool)) == (0.0, 0.0)


def test_interval_of_one_seed_is_the_binomial_one() -> None:
    correct = np.arange(400)[None] < 320  # 0.8 of 400: the normal interval is 0.8 +- 1.96 * 0.02
    low, high = interval(correct, rounds=20_000)
    assert low == pytest.approx(0.8 - 1.96 * 0.02, abs=0.004)
    assert high == pytest.approx(0.8 + 1.96 * 0.02, abs=0.004)


def test_interval_spreads_with_the_seeds() -> None:
    """Two seeds, one always right and one always wrong: means of 0, 1/2 and 1 in the ratio 1 : 2 : 1."""
    correct = np.array([[True] * 50, [False] * 50])
    means = resampled_means(correct.astype(np.int8), 0, 20_000)
    assert set(np.round(means, 9)) == {0.0, 0.5, 1.0}
    assert np.mean(np.isclose(means, 0.5)) == pytest.approx(0.5, abs=0.02)


def test_interval_distinct_columns_stand_for_their_examples() -> None:
    """The same spread as drawing the examples one by one."""
    correct = flags(0.7, 3, 60)
    rng = np.random.default_rng(1)
    slow = [correct[rng.integers(3, size=3)][:, rng.integers(60, size=60)].mean() for _ in range(8000)]
    fast = resampled_means(correct.astype(np.int8), 0, 8000)
    assert fast.mean() == pytest.approx(np.mean(slow), abs=0.004)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.05)


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Examples differ in how hard they are, the same for every seed: what a dev set is like."""
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(200):
        hardness = rng.beta(4, 1, size=150)  # true mean 0.8
        correct = rng.random((5, 150)) < hardness
        low, high = interval(correct, seed=trial, rounds=300)
        hits += low <= 0.8 <= high
    assert 0.90 <= hits / 200 <= 1.0


def test_interval_repeats_itself() -> None:
    correct = flags(0.6, 4, 50)
    assert interval(correct, seed=3) == interval(correct, seed=3)


def test_paired_swapping_turns_the_sign_only() -> None:
    a, b = flags(0.7, 4, 80, seed=1), flags(0.75, 4, 80, seed=2)
    forward, backward = paired(a, b), paired(b, a)
    assert forward == (-backward[0], backward[1])
    assert forward[0] == pytest.approx(b.mean() - a.mean())


def test_paired_equal_rows_do_not_differ() -> None:
    a = flags(0.7, 3, 40)
    assert paired(a, a.copy()) == (0.0, 1.0)


def test_paired_p_is_never_zero() -> None:
    difference, p = paired(np.zeros((2, 30), dtype=bool), np.ones((2, 30), dtype=bool), rounds=99)
    assert difference == 1.0
    assert p == pytest.approx(2 / 100)


def test_paired_counts_rounds_against_it() -> None:
    """One seed, two examples, a gain in one: both draws miss it with probability 1/4, so p is about 1/2."""
    _, p = paired(np.array([[False, True]]), np.array([[True, True]]), rounds=20_000)
    assert p == pytest.approx(0.5, abs=0.02)


def test_paired_pairs_examples() -> None:
    """A gain of 2 points that every example agrees on is sure, though each interval is wide."""
    a = np.tile(np.arange(200) < 140, (3, 1))
    b = np.tile(np.arange(200) < 150, (3, 1))
    assert interval(a)[1] > b.mean()
    assert paired(a, b)[1] < 0.01


def test_paired_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match="same seeds and examples"):
        paired(np.zeros((2, 3), dtype=bool), np.zeros((2, 4), dtype=bool))


CURVE = [(100, 0.6), (1000, 0.7), (10_000, 0.8)]


def test_labels_needed_interpolates_in_the_logarithm() -> None:
    assert labels_needed(CURVE, 0.65) == pytest.approx(10**2.5)
    assert labels_needed(CURVE, 0.72) == pytest.approx(10**3.2)


def test_labels_needed_at_a_point_is_that_point() -> None:
    assert labels_needed(CURVE, 0.7) == 1000.0
    assert labels_needed(CURVE, 0.8) == 10_000.0


def test_labels_needed_below_the_first_is_the_first() -> None:
    assert labels_needed(CURVE, 0.1) == 100.0


def test_labels_needed_above_the_last_is_never() -> None:
    assert labels_needed(CURVE, 0.81) is None
    assert labels_needed([], 0.5) is None


def test_labels_needed_a_dip_does_not_count() -> None:
    dipping = [(100, 0.6), (1000, 0.5), (10_000, 0.8)]
    assert labels_needed(dipping, 0.6) == 100.0
    assert labels_needed(dipping, 0.7) == pytest.approx(10**3.5)


def test_labels_needed_order_does_not_count() -> None:
    assert labels_needed(CURVE[::-1], 0.65) == pytest.approx(10**2.5)


def comparison(right: dict[tuple[str, int, int], int], seconds: dict[str, float]) -> tuple[list[Any], list[Any], Any]:
    """Rows, cells and flags from how many of 100 dev examples each cell gets right (always the first ones)."""
    kinds = dict.fromkeys(row for row, _, _ in right)
    rows = [{"name": name, "title": name.capitalize(), "kind": name} for name in kinds]
    cells = [
        {"row": row, "labels": labels, "seed": seed, "accuracy": n / 100, "macro_f1": n / 100 - 0.01,
         "seconds": seconds[row], "steps": 10, "collapsed": n == 50}
        for (row, labels, seed), n in right.items()
    ]  # fmt: skip
    return rows, cells, {key: np.arange(100) < n for key, n in right.items()}


RIGHT = {
    ("scratch", 50, 0): 60, ("scratch", 50, 1): 62, ("scratch", 500, 0): 70, ("scratch", 500, 1): 72,
    ("elmo", 50, 0): 66, ("elmo", 50, 1): 66, ("elmo", 500, 0): 79, ("elmo", 500, 1): 81,
    ("bert", 50, 0): 50, ("bert", 50, 1): 61, ("bert", 500, 0): 80, ("bert", 500, 1): 81,
}  # fmt: skip
SECONDS = {"scratch": 1.0, "elmo": 3.0, "bert": 9.0}


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    return summarise(*comparison(RIGHT, SECONDS), labels=[50, 500], seeds=[0, 1])


def entry(summary: dict[str, Any], row: str, labels: int) -> dict[str, Any]:
    return next(e for e in summary["table"] if (e["row"], e["labels"]) == (row, labels))


def test_table(summary: dict[str, Any]) -> None:
    assert [(e["row"], e["labels"]) for e in summary["table"]] == [
        (row, labels) for row in ("scratch", "elmo", "bert") for labels in (50, 500)
    ]
    first = entry(summary, "scratch", 50)
    assert first["scores"] == [0.60, 0.62]
    assert first["mean"] == pytest.approx(0.61)
    assert first["spread"] == pytest.approx(0.02 / 2**0.5)
    assert first["macro_f1"] == pytest.approx(0.60)
    assert first["low"] < 0.61 < first["high"]
    assert (first["difference"], first["p"], first["collapsed"]) == (None, None, 0)


def test_each_row_is_held_against_the_one_before(summary: dict[str, Any]) -> None:
    assert entry(summary, "elmo", 500)["difference"] == pytest.approx(0.09)
    assert entry(summary, "bert", 500)["difference"] == pytest.approx(0.005)
    assert entry(summary, "elmo", 500)["p"] < 0.05 < entry(summary, "bert", 500)["p"]
    assert entry(summary, "bert", 50)["collapsed"] == 1


def test_labels_saved(summary: dict[str, Any]) -> None:
    assert summary["labels_saved"] == [
        {"row": "elmo", "labels": 50, "equals": 158,
         "sentence": "Elmo with 50 labels does what scratch does with 158."},
        {"row": "elmo", "labels": 500, "equals": None,
         "sentence": "Elmo with 500 labels does more than scratch does with 500 (the most tried)."},
        {"row": "bert", "labels": 50, "equals": 50,
         "sentence": "Bert with 50 labels is no better than scratch with 50."},
        {"row": "bert", "labels": 500, "equals": None,
         "sentence": "Bert with 500 labels does more than scratch does with 500 (the most tried)."},
    ]  # fmt: skip


def test_advice_names_the_best_and_what_is_as_good(summary: dict[str, Any]) -> None:
    best = entry(summary, "bert", 500)
    assert summary["advice"] == {
        "row": "bert",
        "run": "models/bert",
        "sentence": f"Deploy models/bert: 80.5 % ({100 * best['low']:.1f} to {100 * best['high']:.1f} %) with 500 "
        "labels. models/elmo is not worse by more than chance and trains faster.",
    }


def test_is_plain_json(summary: dict[str, Any]) -> None:
    assert json.loads(json.dumps(summary)) == summary


def test_one_seed_has_no_spread() -> None:
    right = {key: n for key, n in RIGHT.items() if key[2] == 0}
    summary = summarise(*comparison(right, SECONDS), labels=[50, 500], seeds=[0])
    assert entry(summary, "elmo", 50)["spread"] is None
    assert summary["advice"]["sentence"].endswith("One seed only: no spread known.")


def test_half_way() -> None:
    """After three cells: what there is, compared where it can be."""
    right = {key: RIGHT[key] for key in [("scratch", 50, 0), ("elmo", 50, 0), ("scratch", 50, 1)]}
    rows, cells, correct = comparison(right, SECONDS)
    summary = summarise([*rows, {"name": "bert", "title": "Bert", "kind": "bert"}], cells, correct, [50, 500], [0, 1])
    assert [(e["row"], len(e["scores"])) for e in summary["table"]] == [("scratch", 2), ("elmo", 1)]
    assert entry(summary, "elmo", 50)["difference"] == pytest.approx(0.06)


def test_nothing_yet() -> None:
    assert summarise([], [], {}, [50], [0]) == {"table": [], "labels_saved": [], "advice": {}}


def test_without_scratch_no_labels_are_saved() -> None:
    right = {key: n for key, n in RIGHT.items() if key[0] != "scratch"}
    assert summarise(*comparison(right, SECONDS), labels=[50, 500], seeds=[0, 1])["labels_saved"] == []


def test_a_slower_later_row_is_not_advised() -> None:
    right = {("scratch", 50, 0): 80, ("elmo", 50, 0): 80}
    advice = summarise(*comparison(right, SECONDS), labels=[50], seeds=[0])["advice"]
    assert advice["row"] == "scratch"
    assert "elmo" not in advice["sentence"]
