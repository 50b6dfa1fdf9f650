import numpy as np
import pytest

from headstart.tasks.answer_search import AnswerSpan, Span, best_spans, merged, probabilities


def by_brute_force(start, end, most, longest):
    spans = [
        Span(i, j, float(start[i]) + float(end[j]))
        for i in range(len(start))
        for j in range(i, min(len(start), i + longest))
    ]
    spans = [span for span in spans if span.score > -np.inf]
    return sorted(spans, key=lambda span: (-span.score, span.start, span.end))[:most]


@pytest.mark.parametrize("seed", range(150))
def test_the_best_spans_are_those_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    units = int(rng.integers(0, 40))
    start, end = rng.normal(size=(2, units)).astype(np.float32)
    if seed % 3 == 0:  # ties
        start, end = start.round(), end.round()
    if seed % 4 == 0:
        start[rng.random(units) < 0.5] = -np.inf
    for most in (1, 5, 2000):
        for longest in (1, 3, 100):
            assert best_spans(start, end, most, longest) == by_brute_force(start, end, most, longest)


def test_equal_spans_are_ordered_by_start_then_length():
    zeros = np.zeros(3, dtype=np.float32)
    found = [(span.start, span.end) for span in best_spans(zeros, zeros, 4, 2)]
    assert found == [(0, 0), (0, 1), (1, 1), (1, 2)]


def test_sums_do_not_tie_for_want_of_bits():
    start, end = np.array([1e8, 0], dtype=np.float32), np.array([1, 2], dtype=np.float32)
    assert best_spans(start, end, 1, 2) == [Span(0, 1, 100000002.0)]


def test_a_long_window_needs_no_square():
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, 40_000)).astype(np.float32)
    best = best_spans(start, end, 20, 30)
    assert len(best) == 20
    assert best[0].score == max((start[i] + end[i : i + 30].astype(np.float64)).max() for i in range(len(start)))


def test_where_no_answer_may_start():
    nowhere = np.full(4, -np.inf, dtype=np.float32)
    assert best_spans(nowhere, np.zeros(4, dtype=np.float32), 3, 2) == []


@pytest.mark.parametrize(("most", "longest"), [(0, 1), (1, 0)])
def test_sizes_are_checked(most, longest):
    scores = np.zeros(2, dtype=np.float32)
    with pytest.raises(ValueError, match="at least 1"):
        best_spans(scores, scores, most, longest)
    with pytest.raises(ValueError, match="shape"):
        best_spans(scores, scores[:1], 1, 1)


def test_the_same_characters_of_two_windows_count_once():
    windows = [
        [AnswerSpan(0, 4, 2.0), AnswerSpan(5, 9, 1.0)],
        [],
        [AnswerSpan(5, 9, 3.0), AnswerSpan(0, 4, 0.5), AnswerSpan(0, 9, 2.0)],
    ]
    assert merged(windows, 9) == [AnswerSpan(5, 9, 3.0), AnswerSpan(0, 4, 2.0), AnswerSpan(0, 9, 2.0)]
    assert merged(windows, 1) == [AnswerSpan(5, 9, 3.0)]
    assert merged(windows[::-1], 9) == merged(windows, 9)
    assert merged([], 3) == []


def test_probabilities():
    assert probabilities([1.0, 1.0]).tolist() == [0.5, 0.5]
    np.testing.assert_allclose(probabilities(list(np.log([1, 2])), float(np.log(5))), [1 / 8, 2 / 8, 5 / 8])
    assert probabilities([1e30, -1e30]).tolist() == [1, 0]
    assert probabilities([], 7.0).tolist() == [1]
    assert probabilities([]).tolist() == []
