import math

import numpy as np
import pytest

from headstart.metrics import ACCURACY, F1, accuracy, macro_f1, perplexity


def test_perplexity():
    assert perplexity(3 * math.log(8), 3) == pytest.approx(8)
    assert perplexity(1e6, 1) == math.inf


def test_accuracy_and_f1_by_hand():
    gold, predicted = ["a", "a", "b", "b"], ["a", "b", "b", "b"]
    assert accuracy(gold, predicted) == 0.75
    assert macro_f1(gold, predicted, ["a", "b"]) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert macro_f1(gold, predicted, ["a", "b", "never"]) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert macro_f1(["a"] * 4, ["a"] * 4, ["a", "b"]) == 1.0  # all are right


@pytest.mark.parametrize(
    ("in_gold", "in_predicted"), [([0, 1, 2, 3], [0, 1, 2, 3]), ([0, 1, 2], [0, 1]), ([0], [1, 3]), ([1, 2], [1])]
)
@pytest.mark.parametrize("as_list", [False, True])
def test_equal_to_scikit_learn(in_gold, in_predicted, as_list):
    reference = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(7)
    for size in (1, 5, 200):
        gold, predicted = rng.choice(in_gold, size), rng.choice(in_predicted, size)
        given = (gold.tolist(), predicted.tolist()) if as_list else (gold, predicted)
        assert accuracy(*given) == pytest.approx(reference.accuracy_score(gold, predicted))
        for classes in ([0, 1, 2, 3], [0, 1]):
            if not set(classes) & set(gold.tolist()):  # there scikit-learn gives no number, or warns
                continue
            # As scikit-learn does by itself: over the classes that occur in either.
            occur = sorted(set(classes) & {*gold.tolist(), *predicted.tolist()})
            wanted = reference.f1_score(gold, predicted, labels=occur, average="macro", zero_division=0)
            assert macro_f1(*given, classes) == pytest.approx(wanted)


def test_lengths_must_agree():
    for measure in (accuracy, lambda gold, predicted: macro_f1(gold, predicted, [1])):
        with pytest.raises(ValueError, match="zip"):
            measure([1, 1], [1])


def test_a_metric_is_a_function_of_summed_counts() -> None:
    right = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    assert ACCURACY.of(right) == 0.75
    # 3 of 4 predicted entities are right, and there are 5: P = 3/4, R = 3/5, F1 = 2 * 3 / (4 + 5)
    assert F1.of(np.array([[2.0, 2.0, 3.0], [1.0, 2.0, 2.0]])) == pytest.approx(6 / 9)
    assert F1.of(np.zeros((2, 3))) == 0.0
    sums = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    assert F1.value(sums).tolist() == [0.5, 0.0]
