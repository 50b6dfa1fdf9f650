"""The models that come with the package: whole, small, documented, and trained."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from pathlib import Path

import pytest

import headstart
from headstart.atomic import sha256_of
from headstart.inspection.fill import fill
from headstart.inspection.neighbours import word_neighbours
from headstart.inspection.next_words import next_words
from headstart.weights.catalogue import PACKAGE, catalogue

NAMES = {"words-mini": "static", "elmo-mini": "elmo", "bert-mini": "bert"}
MOST_BYTES = 30_000_000
SENTENCES = [
    "I have never seen a film like this before .",
    "The story is told from the point of view of a little girl .",
    "He took his hat and went out of the room .",
    "It was one of the best movies of the year .",
]


def folder(name: str) -> Path:
    package = catalogue()[name].package
    assert package is not None
    return PACKAGE / package


def test_they_are_the_files_of_the_catalogue_and_fit_into_the_package() -> None:
    assert list(catalogue())[:3] == list(NAMES)
    for name, kind in NAMES.items():
        entry = catalogue()[name]
        assert entry.kind == kind
        assert {path.name: sha256_of(path) for path in folder(name).iterdir()} == entry.files
        assert entry.size == sum(path.stat().st_size for path in folder(name).iterdir())
    assert sum(catalogue()[name].size for name in NAMES) <= MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_where_it_comes_from(name: str) -> None:
    card = (folder(name) / "CARD.md").read_text(encoding="utf-8")
    for said in ("**Text**", "**Licence**", "**For**", "**On**", f"recipes/{name}.toml", "perplexity"):
        assert said in card


def shuffled(sentence: str) -> list[str]:
    words = sentence.split()
    random.Random(0).shuffle(words)
    return words


def next_word_loss(elmo: headstart.Pretrained, words: list[str]) -> float:
    """In nats, of all words but the first."""
    total = 0.0
    for number, _ in enumerate(words[1:], start=1):
        guesses = next_words(elmo, " ".join(words[:number]), most=len(elmo.tokenizer))
        total -= math.log(next(guess.probability for guess in guesses if guess.piece == words[number]))
    return total


def masked_loss(bert: headstart.Pretrained, words: list[str]) -> float:
    """In nats, of each word masked in turn."""
    total = 0.0
    for number, word in enumerate(words):
        (guesses,) = fill(bert, " ".join([*words[:number], "[MASK]", *words[number + 1 :]]), most=len(bert.tokenizer))
        total -= math.log(next(guess.probability for guess in guesses if guess.piece == word))
    return total


@pytest.mark.parametrize(("name", "loss"), [("elmo-mini", next_word_loss), ("bert-mini", masked_loss)])
def test_the_language_models_expect_words_where_they_belong(name: str, loss: object) -> None:
    assert callable(loss)
    model = headstart.load(name)
    for sentence in SENTENCES:
        words = sentence.split()
        assert loss(model, words) < loss(model, shuffled(sentence)) - len(words)  # a nat per word


def test_word_vectors_put_like_words_together() -> None:
    words = headstart.load("words-mini")
    for word, near in (("terrible", "awful"), ("film", "movie"), ("uncle", "aunt")):
        assert near in [found.word for found in word_neighbours(words, word, 5)]


def test_every_sentence_has_a_vector_in_every_layer() -> None:
    shapes = {name: headstart.load(name).represent(["The cast is superb ."])[0].shape for name in NAMES}
    assert {name: shape[1] for name, shape in shapes.items()} == dict.fromkeys(NAMES, 5)
    assert all(low < high for (low, *_), (high, *_) in pairwise(shapes.values()))
