"""Texts as an encoder reads them: where words stand, what is cut, and batches of like length."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.batches.rows import (
    Joined,
    Marked,
    collate,
    collate_texts,
    kept_of_pair,
    sorted_batches,
    text_row,
    texts_in,
)
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import CheckpointError, ConfigError
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.wordpiece import SPECIALS, WordPieceTokenizer, build_wordpiece

STATIC = Static(StaticConfig(dim=2), 20)
ELMO = Elmo(ElmoConfig(cell=2, projection=2, filters=[[1, 2]]))
BERT = Bert(BertConfig(layers=1, width=2, heads=1, inner=2), 20)


@pytest.fixture
def words() -> WordTokenizer:
    counter = WordCounter()
    counter.add(dict.fromkeys("abcdefgh", 1))
    return WordTokenizer(counter.vocabulary(None, 1))


def test_a_long_text_keeps_its_first_and_its_last_half(words: WordTokenizer) -> None:
    row = text_row(STATIC, words, "a b c d e f g h", longest=5)
    kept = [words.vocabulary.words[id] for id in row.ids]
    assert kept == ["a", "b", "c", "g", "h"]
    assert row.cut
    assert not text_row(STATIC, words, "a b c d e", longest=5).cut


def test_words_of_elmo_stand_between_its_marks(words: WordTokenizer) -> None:
    row = text_row(ELMO, words, "a b c")
    assert row.ids.shape == (5, 50)
    assert row.word_starts.tolist() == [1, 2, 3]


def test_the_first_mark_can_stand_before_the_words(words: WordTokenizer) -> None:
    assert text_row(ELMO, words, "a b", with_first=True).word_starts.tolist() == [0, 1, 2]
    assert text_row(ELMO, words, "", with_first=True).word_starts.tolist() == [0]


def test_without_marks_no_word_is_read_twice_and_no_text_has_a_word_too_many(words: WordTokenizer) -> None:
    for text in ("a b", ""):
        assert np.array_equal(
            text_row(STATIC, words, text, with_first=True).word_starts, text_row(STATIC, words, text).word_starts
        )


def test_collating_pads_at_the_end_and_marks_missing_words(words: WordTokenizer) -> None:
    batch = collate([text_row(STATIC, words, "a b c"), text_row(STATIC, words, "h")])
    assert batch.ids.shape == (2, 3)
    assert batch.mask.tolist() == [[True, True, True], [True, False, False]]
    assert batch.word_starts.tolist() == [[0, 1, 2], [0, -1, -1]]


def test_no_rows_are_an_empty_batch() -> None:
    batch = collate([])
    assert (len(batch.ids), len(batch.mask), batch.segments, len(batch.word_starts)) == (0, 0, None, 0)


def test_batches_hold_rows_of_like_length_and_every_row_once() -> None:
    lengths = [9, 1, 5, 5, 2, 40, 7]
    batches = sorted_batches(lengths, most_tokens=12)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= 12 for batch in batches)
    assert [lengths[row] for batch in batches for row in batch] == sorted(lengths)


PIECES = [*SPECIALS, "a", "b", "##b", "c", "d", "e"]
CLS, SEP = PIECES.index("[CLS]"), PIECES.index("[SEP]")
A, B, BB, C, D, E = (PIECES.index(piece) for piece in ("a", "b", "##b", "c", "d", "e"))


@pytest.fixture
def pieces() -> WordPieceTokenizer:
    return build_wordpiece(PIECES, lowercase=True)


def test_bert_stands_between_its_marks_and_a_word_where_its_first_piece_does(pieces: WordPieceTokenizer) -> None:
    for text in ("a bb c", ["a", "bb", "c"], ("a", "bb", "c")):
        row = text_row(BERT, pieces, text)
        assert row.ids.tolist() == [CLS, A, B, BB, C, SEP]
        assert row.word_starts.tolist() == [1, 2, 4]
        assert row.segments is None


def test_a_pair_has_its_second_text_in_segment_1(pieces: WordPieceTokenizer) -> None:
    for pair in (Joined("a bb", "c d"), Joined(("a", "bb"), ("c", "d"))):
        row = text_row(BERT, pieces, pair)
        assert row.ids.tolist() == [CLS, A, B, BB, SEP, C, D, SEP]
        assert row.segments is not None
        assert row.segments.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
        assert row.word_starts.tolist() == [1, 2, 5, 6]
        assert not row.cut
    assert text_row(BERT, pieces, Joined("a", "c"), with_first=True).word_starts.tolist() == [0, 1, 3]


def test_of_a_long_pair_the_longer_text_is_cut_first_at_its_end(pieces: WordPieceTokenizer) -> None:
    # Five tokens are kept besides the two marks of a single text; a pair has one mark more.
    row = text_row(BERT, pieces, Joined("a bb c d e", "d e"), longest=5)
    assert row.ids.tolist() == [CLS, A, B, SEP, D, E, SEP]
    assert row.word_starts.tolist() == [1, 2, 4, 5]
    assert row.cut
    assert len(text_row(BERT, pieces, Joined("a", ""), longest=0).ids) == 3


def popped(first: int, second: int, longest: int) -> tuple[int, int]:
    """BERT's own loop."""
    while first + second > longest:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_pairs_are_cut_as_berts_own_loop_does() -> None:
    for first, second, longest in itertools.product(range(8), range(8), range(12)):
        assert kept_of_pair(first, second, longest) == popped(first, second, longest)
    assert kept_of_pair(7, 9, None) == (7, 9)


def test_pairs_and_single_texts_share_a_batch(pieces: WordPieceTokenizer) -> None:
    single = text_row(BERT, pieces, "a b c d e")
    batch = collate([single, text_row(BERT, pieces, Joined("a", "c d"))])
    assert batch.segments is not None
    assert batch.segments.tolist() == [[0] * 7, [0, 0, 0, 1, 1, 1, 0]]
    assert collate([single]).segments is None


@pytest.mark.parametrize("encoder", [STATIC, ELMO], ids=lambda encoder: encoder.kind)
def test_an_encoder_without_segments_refuses_a_pair(encoder: Encoder, words: WordTokenizer) -> None:
    with pytest.raises(ConfigError, match="reads one text at a time"):
        text_row(encoder, words, Joined("a", "b"))


def test_bert_needs_word_pieces(words: WordTokenizer) -> None:
    with pytest.raises(CheckpointError, match="BERT reads word pieces, and this tokenizer is of the kind 'words'"):
        text_row(BERT, words, "a")


def test_a_pair_is_read_as_transformers_reads_it(pieces: WordPieceTokenizer, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=16,
    )
    model = transformers.BertForPreTraining(config).eval()
    model.save_pretrained(tmp_path)
    pieces.save(tmp_path)
    tokenizer = transformers.BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt"))
    theirs = tokenizer("a bb c", "d e", return_tensors="pt")
    pair = Joined("a bb c", "d e")
    batch = collate([text_row(BERT, pieces, pair)])
    assert torch.equal(batch.ids, theirs["input_ids"])
    assert batch.segments is not None
    assert torch.equal(batch.segments, theirs["token_type_ids"])
    with torch.no_grad():
        expected = model.bert(**theirs).last_hidden_state[0, [1, 2, 4, 6, 7]].numpy()
    (vectors,) = headstart.load(tmp_path).represent([pair], "top")
    np.testing.assert_allclose(vectors[0], expected, atol=1e-5)


# --- marked words -----------------------------------------------------------------------------------------------------


def test_a_marked_word_has_segment_1_at_all_its_pieces_and_at_nothing_else(pieces: WordPieceTokenizer) -> None:
    words = ("a", "bb", "c", "bb")
    row = text_row(BERT, pieces, Marked(words, 1, 2, seen=True))
    assert row.ids.tolist() == [CLS, A, B, BB, C, B, BB, SEP]
    assert row.segments is not None
    assert row.parts is not None
    assert row.segments.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert row.parts.tolist() == [0, 1, 0, 0]
    of_word = [-1, 0, 1, 1, 2, 3, 3, -1]
    for first, end in itertools.combinations(range(len(words) + 1), 2):
        row = text_row(BERT, pieces, Marked(words, first, end, seen=True))
        assert row.segments is not None
        assert row.parts is not None
        assert row.segments.tolist() == [int(first <= word < end) for word in of_word]
        assert row.parts.tolist() == [int(first <= word < end) for word in range(len(words))]


@pytest.mark.parametrize("words", [(), ("a",), ("a", "bb", "c")])
def test_with_no_word_marked_a_row_is_that_of_the_plain_words(
    words: tuple[str, ...], pieces: WordPieceTokenizer
) -> None:
    for with_first in (False, True):
        plain = text_row(BERT, pieces, words, with_first=with_first)
        row = text_row(BERT, pieces, Marked(words, 0, 0, seen=True), with_first=with_first)
        assert row.ids.tolist() == plain.ids.tolist()
        assert row.word_starts.tolist() == plain.word_starts.tolist()
        assert row.segments is not None
        assert row.parts is not None
        assert not row.segments.any()
        assert row.parts.tolist() == [0] * len(row.word_starts)


def test_a_marked_word_longer_than_a_row_keeps_its_mark(pieces: WordPieceTokenizer) -> None:
    row = text_row(BERT, pieces, Marked(("b" * 9,), 0, 1, seen=True), longest=4)
    assert row.cut
    assert row.segments is not None
    assert row.parts is not None
    assert row.segments.tolist() == [0, 1, 1, 1, 1, 0]
    assert row.parts.tolist() == [1]


def test_marked_words_that_do_not_fit_are_a_mistake_of_the_caller(pieces: WordPieceTokenizer) -> None:
    with pytest.raises(ValueError, match="a marked text must fit into a row: 3 words, 2 fit"):
        text_row(BERT, pieces, Marked(("a", "c", "d"), 0, 1, seen=True), longest=2)


def test_a_mark_that_only_the_head_reads_leaves_the_encoder_the_plain_words() -> None:
    words = ("a", "c")
    assert texts_in(Marked(words, 0, 1, seen=False)) == texts_in(Marked(words, 1, 2, seen=False)) == [words]
    seen = Marked(words, 0, 1, seen=True)
    assert texts_in(seen) == [seen]


def test_marked_rows_of_different_lengths_share_a_batch(pieces: WordPieceTokenizer) -> None:
    rows = [text_row(BERT, pieces, Marked(words, 1, 2, seen=True)) for words in (("a", "bb", "c"), ("a", "c"))]
    batch = collate(rows)
    assert batch.segments is not None
    assert batch.parts is not None
    assert batch.segments.tolist() == [[0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0]]
    assert batch.parts.tolist() == [[0, 1, 0], [0, 1, 0]]


def test_texts_that_differ_in_an_unread_mark_are_one_sequence(pieces: WordPieceTokenizer) -> None:
    shared, other = (text_row(BERT, pieces, words) for words in (("a", "bb", "c"), ("a",)))
    marked = [replace(shared, parts=np.eye(3, dtype=np.int64)[word]) for word in (2, 0)]
    rows = [[marked[0]], [replace(other, parts=np.array([1]))], [marked[1]]]
    batch, apart = collate_texts(rows), collate([row for (row,) in rows])
    assert len(batch.ids) == 2
    assert batch.word_rows is not None
    assert batch.parts is not None
    assert batch.parts.tolist() == [[0, 0, 1], [1, 0, 0], [1, 0, 0]]
    assert batch.word_starts.tolist() == apart.word_starts.tolist()
    assert batch.word_rows.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]  # 0 too where there is no word
    for b, of_words in enumerate(batch.word_starts.tolist()):
        for w, place in enumerate(of_words):
            if place >= 0:
                assert batch.ids[batch.word_rows[b, w], place] == apart.ids[b, place]


def test_the_two_texts_of_pairs_share_sequences_too(words: WordTokenizer) -> None:
    premise, one, other = (text_row(ELMO, words, text) for text in (("a", "b"), ("c",), ("a", "c")))
    batch = collate_texts([[premise, one], [premise, other]])
    assert len(batch.ids) == 3
    assert batch.word_rows is not None
    assert batch.parts is not None
    assert batch.word_rows.tolist() == [[0, 0, 1, 0], [0, 0, 2, 2]]
    assert batch.parts.tolist() == [[0, 0, 1, 0], [0, 0, 1, 1]]


def test_segments_keep_rows_of_the_same_ids_apart(pieces: WordPieceTokenizer) -> None:
    plain = text_row(BERT, pieces, ("a", "c"))
    marked = [replace(plain, segments=np.eye(4, dtype=np.int64)[word]) for word in (1, 2)]
    assert len(collate_texts([[row] for row in marked]).ids) == 2
