from __future__ import annotations

import itertools
import random

from headstart.tasks.plain_text import sentences_and_words
from headstart.text.words import split_words

ODD = [
    "Rome",
    "été",
    "e\u0301te\u0301",
    "👩‍👩‍👧",
    "🇫🇷",
    "。",
    "漢字",
    "a\u00a0b",
    "\t",
    " ",
    "\r\n",
    "\n\n",
    ". ",
    "U.S.",
    "@me",
    "\x00",
    "\ufeff",
    "don't",
]


def test_sentences_and_words_by_hand() -> None:
    text = " In Rome, 3.5 °C.\tMr. Bo\u0308ll left 🙂!\n\nYes\n"
    sentences = sentences_and_words(text)
    assert [[word for word, _, _ in sentence] for sentence in sentences] == [
        ["In", "Rome", ",", "3.5", "°", "C", "."],
        ["Mr", ".", "Bo\u0308ll", "left", "🙂", "!"],
        ["Yes"],
    ]
    assert sentences[1][2] == ("Bo\u0308ll", 22, 27)
    assert sentences_and_words("") == sentences_and_words(" \n\t\x00") == []


def test_lines_may_be_the_sentences() -> None:
    assert [len(sentence) for sentence in sentences_and_words("One. Two.\nThree", lines_are_sentences=True)] == [4, 1]


def test_places_are_exact_in_any_text_and_no_word_is_lost() -> None:
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choices(ODD, k=rng.randint(0, 30)))
        sentences = sentences_and_words(text)
        words = [word for sentence in sentences for word in sentence]
        assert all(text[start:end] == word for word, start, end in words)
        assert all(a.end <= b.start for a, b in itertools.pairwise(words))
        assert all(sentences)
        kept = "".join(word for word, _, _ in words)
        assert sorted(kept) == sorted("".join(split_words(text)))
