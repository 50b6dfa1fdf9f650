from __future__ import annotations

import numpy as np
import pytest

from headstart.pretraining.sequences import Sentences, Windows


def test_windows_cover_every_unit_once_and_keep_the_length(make_shards) -> None:
    rng = np.random.default_rng(0)
    documents = [
        [rng.integers(5, 50, size=rng.integers(1, 30)).tolist() for _ in range(rng.integers(1, 12))] for _ in range(40)
    ]
    windows = Windows(make_shards(documents, 50), 16)
    pieces: dict[int, list[int]] = {}
    for i in range(len(windows)):
        assert 1 <= len(windows[i]) <= 16
        pieces.setdefault(windows.place(i).document, []).extend(windows[i].tolist())
    assert pieces == {d: [id for sentence in document for id in sentence] for d, document in enumerate(documents)}


def test_a_cut_moves_to_a_sentence_end_that_is_close(make_shards) -> None:
    # 20 units in windows of 16: an even cut at 10, a sentence end at 12, and room for it.
    windows = Windows(make_shards([[list(range(12)), list(range(8))]], 50), 16)
    assert [(windows.place(i).start, windows.place(i).end) for i in range(2)] == [(0, 12), (12, 20)]


def test_a_sentence_longer_than_the_window_is_cut_inside(make_shards) -> None:
    windows = Windows(make_shards([[list(range(40))]], 50), 16)
    assert [len(windows[i]) for i in range(len(windows))] == [13, 13, 14]


def test_sentences_are_themselves(make_shards) -> None:
    sentences = Sentences(make_shards([[[1, 2, 3], [4]], [[5, 6]]], 10))
    assert [sentences[i].tolist() for i in range(len(sentences))] == [[1, 2, 3], [4], [5, 6]]
    assert sentences.lengths(np.array([2, 0])).tolist() == [2, 3]


def test_lengths_of_windows_are_even_shares(make_shards) -> None:
    windows = Windows(make_shards([[list(range(30))], [[1, 2]]], 50), 16)
    assert windows.lengths(np.arange(3)).tolist() == pytest.approx([15, 15, 2])
