import numpy as np
import pytest

from headstart.errors import CheckpointError
from headstart.text import runs
from headstart.text.encoding import SentenceIds
from headstart.text.tokenizer import TOKENIZERS, Tokenizer, WordTokenizer, load_tokenizer
from headstart.text.vocabulary import WordCounter
from headstart.text.wordpiece_learning import learn_wordpiece
from headstart.text.words import split_words

TEXTS = ["The cat sat, the dog sat.", "A dog's day; ΟΔΟΣ.ΑΣ and café!", "cats <UNK> and <S> again 中文"]


def word_tokenizer(lowercase: bool = False) -> WordTokenizer:
    counter = WordCounter(lowercase=lowercase)
    counter.add({"the": 5, "The": 4, "sat": 4, "dog": 3, ",": 2, ".": 2, "and": 1})
    return WordTokenizer(counter.vocabulary(None, 1))


def make(kind: str) -> Tokenizer:
    return word_tokenizer() if kind == "words" else learn_wordpiece(TEXTS * 3, size=120, lowercase=True)


def test_words_outside_the_vocabulary_are_kept_as_extras():
    tokenizer = word_tokenizer()
    assert tokenizer.vocabulary.words[3:] == ("the", "The", "sat", "dog", ",", ".", "and")
    found = tokenizer.encode_sentences(["The cat sat,", "", "cat and <S> dog <UNK>"])
    assert found.ids.tolist() == [4, 10, 5, 7, 10, 9, 11, 6, 12]
    assert found.lengths.tolist() == [4, 0, 5]
    assert found.extras == ["cat", "<S>", "<UNK>"]


def test_encode_gives_words_with_their_places():
    text = "The  cat sat <S>."
    encoding = word_tokenizer().encode(text)
    assert encoding.units == ["The", "cat", "sat", "<S>", "."]
    assert encoding.ids.tolist() == [4, 2, 5, 2, 8]
    assert [text[first:last] for first, last in encoding.spans.tolist()] == encoding.units
    assert encoding.words.tolist() == [0, 1, 2, 3, 4]


def test_lowercase_leaves_units_and_spans_as_they_were():
    tokenizer = word_tokenizer(lowercase=True)
    encoding = tokenizer.encode("İ THE")
    assert encoding.units == ["İ", "THE"]
    assert encoding.ids.tolist() == [2, 3]
    assert tokenizer.encode_sentences(["İ THE"]).extras == ["i̇"]


@pytest.mark.parametrize("lowercase", [False, True])
def test_the_fast_path_finds_the_same_words(lowercase):
    tokenizer = word_tokenizer(lowercase)
    found = tokenizer.encode_sentences(TEXTS)
    names = [*tokenizer.vocabulary.words, *found.extras]
    expected = [word.lower() if lowercase else word for text in TEXTS for word in split_words(text)]
    assert [names[id] for id in found.ids] == expected
    known = np.where(found.ids < len(tokenizer), found.ids, tokenizer.vocabulary.unknown)
    assert known.tolist() == [id for text in TEXTS for id in tokenizer.encode(text).ids.tolist()]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_saved_tokenizer_comes_back(tmp_path, kind):
    tokenizer = make(kind)
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert (loaded.kind, loaded.fingerprint, len(loaded)) == (kind, tokenizer.fingerprint, len(tokenizer))
    for text in TEXTS:
        np.testing.assert_array_equal(loaded.encode(text).ids, tokenizer.encode(text).ids)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_ids_do_not_depend_on_what_is_remembered(monkeypatch, kind):
    tokenizer = make(kind)
    before = tokenizer.encode_sentences(TEXTS)
    monkeypatch.setattr(runs, "KEPT_CHARACTERS", 10)
    for _ in range(3):
        after = tokenizer.encode_sentences(TEXTS)
        np.testing.assert_array_equal(after.ids, before.ids)
        assert after.extras == before.extras


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_no_sentences(kind):
    found = make(kind).encode_sentences([])
    assert len(found.ids) == len(found.lengths) == 0


def test_the_fingerprint_follows_words_and_case():
    plain, lowered = word_tokenizer(), word_tokenizer(lowercase=True)
    assert plain.fingerprint != lowered.fingerprint
    assert WordTokenizer(plain.vocabulary, lowercase=True).fingerprint == lowered.fingerprint


def test_a_folder_without_tokenizer(tmp_path):
    with pytest.raises(CheckpointError, match=r"no tokenizer is there; looked for words.tsv"):
        load_tokenizer(tmp_path)


def test_long_sentences_are_cut():
    found = SentenceIds(np.arange(12, dtype=np.int32), np.array([3, 0, 7, 2], dtype=np.int32), [])
    assert found.cut(3).lengths.tolist() == [3, 3, 3, 1, 2]
    assert found.pieces(3).tolist() == [1, 0, 3, 1]
    assert found.cut(100).lengths.tolist() == [3, 7, 2]
