from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import DataError
from headstart.inspection.neighbours import neighbours, row_of, word_neighbours
from headstart.pretrained import Pretrained
from headstart.progress import result_of
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


def test_neighbours_of_a_word_as_a_table_and_in_a_notebook(vectors: Pretrained) -> None:
    found = result_of(neighbours(vectors, "north", most=1))
    assert found.as_table()["neighbours"] == [{"word": "northeast", "cosine": pytest.approx(3 / 13**0.5)}]
    assert "<td>northeast</td>" in found._repr_html_()


def test_word_pieces_have_no_neighbours_of_their_own(pretrained_runs: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="word pieces"):
        row_of(headstart.load(pretrained_runs["bert"]), "film")
