"""Texts as an encoder reads them: where words stand, what is cut, and batches of like length."""

from __future__ import annotations

import numpy as np
import pytest

from headstart.batches.rows import collate, sorted_batches, text_row
from headstart.encoders.elmo import Elmo
from headstart.encoders.static import Static
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter


@pytest.fixture
def words() -> WordTokenizer:
    counter = WordCounter()
    counter.add(dict.fromkeys("abcdefgh", 1))
    return WordTokenizer(counter.vocabulary(None, 1))


def test_a_long_text_keeps_its_first_and_its_last_half(words: WordTokenizer) -> None:
    row = text_row(Static, words, "a b c d e f g h", longest=5)
    kept = [words.vocabulary.words[id] for id in row.ids]
    assert kept == ["a", "b", "c", "g", "h"]
    assert row.cut
    assert not text_row(Static, words, "a b c d e", longest=5).cut


def test_words_of_elmo_stand_between_its_marks(words: WordTokenizer) -> None:
    row = text_row(Elmo, words, "a b c")
    assert row.ids.shape == (5, 50)
    assert row.word_starts.tolist() == [1, 2, 3]


def test_the_first_position_can_stand_before_the_words(words: WordTokenizer) -> None:
    assert text_row(Elmo, words, "a b", with_first=True).word_starts.tolist() == [0, 1, 2]


def test_collating_pads_at_the_end_and_marks_missing_words(words: WordTokenizer) -> None:
    batch = collate([text_row(Static, words, "a b c"), text_row(Static, words, "h")], np.array([1, 0]))
    assert batch.ids.shape == (2, 3)
    assert batch.mask.tolist() == [[True, True, True], [True, False, False]]
    assert batch.word_starts.tolist() == [[0, 1, 2], [0, -1, -1]]
    assert batch.gold is not None
    assert batch.gold.tolist() == [1, 0]


def test_batches_hold_rows_of_like_length_and_every_row_once() -> None:
    lengths = [9, 1, 5, 5, 2, 40, 7]
    batches = sorted_batches(lengths, most_tokens=12)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= 12 for batch in batches)
    assert [lengths[row] for batch in batches for row in batch] == sorted(lengths)
