import math
import random

import numpy as np
import pytest

from headstart.tasks.qa_scores import QA_F1, best_threshold, between, by_answer_kind, exact_match, f1, normalised


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The Denver Broncos!", "denver broncos"),
        ("a an the", ""),
        ("the", ""),
        ("...", ""),
        ("theory another an.", "theory another"),
        ("U.S.", "us"),
        ("t.h.e cat", "cat"),  # punctuation goes first, so that this becomes an article
        ("A-10", "a10"),
        ("one\t two\u00a0three\n", "one two three"),
        ("“the” – cat", "“ ” – cat"),  # other than ASCII punctuation stays
        ("à la the", "à la"),
        ("$3,000.50", "300050"),
        ("STRASSE İ", "strasse i̇"),
    ],
)
def test_answers_are_normalised_as_the_scorers_do(answer, expected):
    assert normalised(answer) == expected


@pytest.mark.parametrize(
    ("predicted", "golds", "exact", "expected"),
    [
        ("Denver Broncos", ["The Denver Broncos", "Broncos"], 1, 1),
        ("Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("the the cat cat", ["cat"], 0, 2 / 3),  # a repeated word counts as often as in both
        ("cat cat dog", ["cat cat cat"], 0, 2 / 3),
        ("in the 1990s", ["1990s", "the year 1990"], 0, 2 / 3),
        ("x", ["y", "z"], 0, 0),
        ("“cat”", ["cat"], 0, 0),
        ("", ["cat"], 0, 0),
        ("one two", ["two one"], 0, 1),
    ],
)
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_best_of_several_answers(predicted, golds, exact, expected, version):
    assert exact_match(predicted, golds, version=version) == exact
    assert f1(predicted, golds, version=version) == pytest.approx(expected)


def test_answers_that_normalise_to_nothing():
    assert [exact_match("the", ["a"], version="1.1"), f1("the", ["a"], version="1.1")] == [1, 0]
    assert [exact_match("the", ["a"]), f1("the", ["a"])] == [1, 1]
    assert [exact_match("", []), f1("", []), exact_match("cat", []), f1("cat", [])] == [1, 1, 0, 0]
    # Version 2.0 drops "the" from the gold answers, because another one is left.
    assert [exact_match("", ["the", "cat"]), f1("", ["the", "cat"])] == [0, 0]
    assert exact_match("", ["the", "cat"], version="1.1") == 1
    with pytest.raises(ValueError, match=r"SQuAD 1\.1"):
        f1("x", [], version="1.1")


def test_the_metric_is_the_mean():
    assert QA_F1.of(np.array([[1.0, 1], [0.5, 1], [0.0, 1]])) == 0.5


def test_questions_with_and_without_answer():
    golds = [["cat"], ["black cat"], [], []]
    assert by_answer_kind(["cat", "cat", "", "dog"], golds) == {
        "HasAns": {"exact": 0.5, "f1": pytest.approx(5 / 6), "questions": 2},
        "NoAns": {"exact": 0.5, "f1": 0.5, "questions": 2},
    }
    assert list(by_answer_kind(["cat"], [["cat"]])) == ["HasAns"]


def mean_at(threshold, scores):
    return math.fsum(no if gap > threshold else yes for gap, yes, no in scores) / len(scores)


@pytest.mark.parametrize("seed", range(200))
def test_no_threshold_is_better(seed):
    rng = random.Random(seed)
    scores = []
    for _ in range(rng.randint(1, 12)):
        gap = rng.choice([rng.randint(-2, 2), rng.uniform(-3, 3), math.inf])
        scores.append((gap, 0.0, 1.0) if rng.random() < 0.5 else (gap, rng.choice([0.0, 0.5, 1.0]), 0.0))
    threshold, found = best_threshold(scores)
    gaps = sorted({gap for gap, _, _ in scores if gap < math.inf})
    assert math.isfinite(threshold)
    assert found == pytest.approx(mean_at(threshold, scores))
    assert found == pytest.approx(max(mean_at(other, scores) for other in [-99, *gaps, 99]))
    # The middle between two differences, so each of them may change a little.
    assert all(abs(threshold - gap) > 1e-9 for gap in gaps)
    assert best_threshold(rng.sample(scores, len(scores)))[0] == threshold


def test_a_hand_made_threshold():
    scores = [(-3.0, 1.0, 0.0), (-1.0, 0.5, 0.0), (2.0, 0.0, 1.0), (4.0, 0.0, 1.0)]
    assert best_threshold(scores) == (0.5, 0.875)
    assert best_threshold([(-3.0, 1.0, 0.0)]) == (-2.0, 1.0)
    assert best_threshold([(-3.0, 0.0, 1.0)]) == (-4.0, 1.0)
    assert best_threshold([(math.inf, 0.0, 1.0)]) == (0.0, 1.0)
    with pytest.raises(ValueError, match="at least one"):
        best_threshold([])
    with pytest.raises(ValueError, match="finite"):
        best_threshold([(math.nan, 0.0, 0.0)])


def test_the_middle_of_neighbours_is_the_lower():
    high = math.nextafter(1.0, 2.0)
    assert between(1.0, high) == 1.0
    assert between(high, math.nextafter(high, 2.0)) == high
