from __future__ import annotations

import itertools
import random

import numpy as np

from headstart.tasks.windows import most_central, word_windows


def test_windows_cover_every_word_and_fit() -> None:
    rng = random.Random(0)
    for _ in range(300):
        tokens = np.array(rng.choices(range(1, 9), k=rng.randint(1, 120)))
        longest = rng.randint(1, 40)
        windows = word_windows(tokens, longest)
        assert windows[0][0] == 0
        assert windows[-1][1] == len(tokens)
        assert all(tokens[start:end].sum() <= longest or end == start + 1 for start, end in windows)
        for (start, end), (next_start, next_end) in itertools.pairwise(windows):
            assert start < next_start <= end <= next_end


def test_neighbouring_windows_share_a_quarter_of_their_tokens() -> None:
    rng = random.Random(1)
    widest = 4
    for _ in range(100):
        tokens = np.array(rng.choices(range(1, widest + 1), k=rng.randint(50, 200)))
        longest = rng.randint(4 * widest, 40)
        for (_, end), (next_start, _) in itertools.pairwise(word_windows(tokens, longest)):
            assert next_start < end
            assert abs(tokens[next_start:end].sum() - longest / 4) <= widest


def test_windows_by_hand() -> None:
    assert word_windows(np.ones(0, dtype=np.int64), 8) == []
    assert word_windows(np.ones(8, dtype=np.int64), 8) == [(0, 8)]
    assert word_windows(np.ones(20, dtype=np.int64), 8) == [(0, 8), (6, 14), (12, 20)]
    assert word_windows(np.ones(20, dtype=np.int64), 8, 0) == [(0, 8), (8, 16), (16, 20)]
    assert word_windows(np.ones(12, dtype=np.int64), 8, 5) == [(0, 8), (3, 11), (6, 12)]


def test_a_word_longer_than_a_window_has_one_of_its_own() -> None:
    assert word_windows(np.array([1, 50, 1]), 8) == [(0, 1), (1, 2), (2, 3)]
    assert word_windows(np.array([50]), 8) == [(0, 1)]


def test_a_long_document_is_covered_by_few_windows() -> None:
    windows = word_windows(np.ones(50_000, dtype=np.int64), 254)
    assert windows[-1][1] == 50_000
    assert len(windows) < 1.1 * 50_000 / (0.75 * 254)
    assert (np.bincount(most_central(windows, 50_000), minlength=len(windows)) > 0).all()


def test_most_central_by_hand() -> None:
    # Words 5, 6 and 7 are in both windows: 2, 1 and 0 words before the end of the first, 0, 1 and 2 into the second.
    assert most_central([(0, 8), (5, 13)], 13).tolist() == [0] * 7 + [1] * 6
    assert most_central([(0, 3)], 3).tolist() == [0, 0, 0]
    assert most_central([(0, 1), (1, 2)], 2).tolist() == [0, 1]
