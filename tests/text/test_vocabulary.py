import re
from collections import Counter

import numpy as np
import pytest

from headstart.errors import CheckpointError, DataError
from headstart.text.vocabulary import SPECIALS, Vocabulary, WordCounter


def counter(**counts: int) -> WordCounter:
    made = WordCounter()
    made.add(Counter(counts))
    return made


def test_words_are_numbered_by_falling_count_and_alphabet():
    vocabulary = counter(b=2, a=2, c=5, rare=1).vocabulary(None, 2)
    assert vocabulary.words == ("<S>", "</S>", "<UNK>", "c", "a", "b")
    assert vocabulary.counts.tolist() == [0, 0, 0, 5, 2, 2]
    assert (vocabulary.id("a"), vocabulary.id("rare"), vocabulary.id("</S>"), vocabulary.unknown) == (4, 2, 1, 2)


def test_a_mark_in_the_text_is_not_numbered_twice():
    made = WordCounter()
    made.add({"<UNK>": 9, "<unk>": 3})
    assert made.vocabulary(None, 1).words == (*SPECIALS, "<unk>")


def test_size_counts_the_marks():
    assert len(counter(a=3, b=2, c=1).vocabulary(5, 1)) == 5


def test_most_caps_a_vocabulary_of_every_word():
    assert counter(a=3, b=2, c=1).vocabulary(None, 1, most=5).words[3:] == ("a", "b")
    assert len(counter(a=3, b=2, c=1).vocabulary(None, 1, most=99)) == 6


def test_more_words_than_the_text_has_is_an_error():
    with pytest.raises(DataError, match=r"has 2 different words .* at least 2 times.*tokenizer.size to at most 5"):
        counter(a=3, b=2, c=1).vocabulary(6, 2)
    with pytest.raises(DataError, match="no word that occurs at least 9 times"):
        counter(a=3).vocabulary(None, 9)


def test_memory_is_bounded_and_frequent_words_survive():
    made = WordCounter(most=100)
    for i in range(50):
        made.add(Counter({"often": 10, "always": 20, **{f"word{i}-{j}": 1 for j in range(30)}}))
        assert len(made.counts) <= 100
    assert made.floor >= 1
    assert made.counts["often"] == 500
    assert made.counts["always"] == 1000
    assert made.total == 50 * 60


def test_saved_vocabulary_comes_back(tmp_path):
    made = WordCounter(lowercase=True)
    made.add({"é": 4, "# not a header": 2, "\u2028": 2, "x": 1})
    vocabulary = made.vocabulary(None, 1)
    vocabulary.save(tmp_path / "words.tsv")
    assert (tmp_path / "words.tsv").read_text(encoding="utf-8").startswith("# headstart words lowercase=true\n<S>\t0\n")
    loaded = Vocabulary.load(tmp_path / "words.tsv")
    assert loaded.words == vocabulary.words
    assert loaded.lowercase
    np.testing.assert_array_equal(loaded.counts, vocabulary.counts)
    assert loaded.fingerprint() == vocabulary.fingerprint()


GOOD = "# headstart words lowercase=false\n<S>\t0\n</S>\t0\n<UNK>\t0\na\t3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("words\n" + GOOD, "words.tsv:1: expected '# headstart words"),
        (GOOD + "b 2\n", "words.tsv:6: expected 'word TAB count', got 'b 2'"),
        (GOOD + "b\t" + "9" * 19 + "\n", "words.tsv:6: expected 'word TAB count'"),
        (GOOD + "b\t-2\n", "words.tsv:6"),
        (GOOD + "b\t2", "words.tsv:6: the file is cut short"),
        (GOOD + "a\t2\n", "'a' stands there more than once"),
        (GOOD.replace("<UNK>\t0\n", ""), "<UNK> is not there"),
        ("", "words.tsv:1"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, text, message):
    (tmp_path / "words.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=re.escape(message)):
        Vocabulary.load(tmp_path / "words.tsv")


def test_unreadable_files(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        Vocabulary.load(tmp_path / "absent")
    (tmp_path / "words.tsv").write_bytes(b"\xff")
    with pytest.raises(CheckpointError, match="not UTF-8"):
        Vocabulary.load(tmp_path / "words.tsv")


def test_counts_come_back(tmp_path):
    made = counter(a=3, b=1)
    made.save(tmp_path / "counts.tsv")
    loaded = WordCounter.load(tmp_path / "counts.tsv", lowercase=False)
    assert loaded is not None
    assert (loaded.counts, loaded.total, loaded.floor) == (made.counts, 4, 0)
    text = (tmp_path / "counts.tsv").read_text()
    assert "a\t3" in text
    for broken in (
        "",
        text[:-3],
        text.replace("\t", " "),
        text.replace("a\t3", "a\t2"),
        text.replace("\t4\t", "\t5\t"),
    ):
        (tmp_path / "counts.tsv").write_text(broken)
        assert WordCounter.load(tmp_path / "counts.tsv", lowercase=False) is None
