from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import DataError
from headstart.inspection.neighbours import neighbours_in_context, word_neighbours
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary


@pytest.fixture
def vectors() -> Pretrained:
    """Four words on a plane: north-east lies between north and east, south opposite to north."""
    words = (*SPECIALS, "north", "east", "northeast", "south")
    encoder = Static(StaticConfig(dim=2), len(words))
    places = [[0, 0], [0, 0], [0, 0], [0, 1], [1, 0], [2, 3], [0, -1]]
    with torch.no_grad():
        encoder.vectors.copy_(torch.tensor(places, dtype=torch.float32))
    counts = np.array([0, 0, 0, 4, 3, 2, 1])
    return Pretrained(encoder, WordTokenizer(Vocabulary(words, counts, lowercase=True)))


def test_neighbours_by_hand(vectors: Pretrained) -> None:
    found = word_neighbours(vectors, "North", most=3)
    assert [neighbour.word for neighbour in found] == ["northeast", "east", "south"]
    assert [neighbour.cosine for neighbour in found] == pytest.approx([3 / 13**0.5, 0.0, -1.0], abs=1e-6)


def test_an_unknown_word_is_refused(vectors: Pretrained) -> None:
    with pytest.raises(DataError, match="'up' is not in the vocabulary of 7 words"):
        word_neighbours(vectors, "up")


def test_in_context_the_same_sentence_is_nearest(corpus: Path, tmp_path: Path) -> None:
    list(headstart.pretrain("elmo", corpus, out=tmp_path / "run", size="tiny", steps=2))
    encoder = headstart.load(tmp_path / "run")
    sentences = ["A dog hates the music .", "Nobody likes the film .", "The cat writes old songs ."]
    found = neighbours_in_context(encoder, "Nobody likes the film .", "film", sentences)
    assert (found[0].word, found[0].sentence) == ("film", "Nobody likes the film .")
    assert found[0].cosine == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(DataError, match="'play' is not a word of the sentence"):
        neighbours_in_context(encoder, "Nobody likes the film .", "play", sentences)
