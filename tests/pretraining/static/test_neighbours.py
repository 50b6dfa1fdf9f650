"""The held-out figure of static vectors: its sample and its two perplexities by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.pretraining.static import neighbours
from headstart.pretraining.static.neighbours import (
    around,
    sample_neighbourhoods,
    softmax_perplexity,
    unigram_perplexity,
)

V = 50


class TextInMemory:
    """Sentences of five words, with the methods of Shards that sampling uses."""

    vocabulary_size = V

    def __init__(self, n_sentences: int) -> None:
        self.sentences = np.random.default_rng(0).integers(3, V, (n_sentences, 5))
        self.n_units = 5 * n_sentences

    def sentences_between(self, first: int, last: int) -> list[NDArray[Any]]:
        return list(self.sentences[-(-first // 5) : -(-last // 5)])


def test_around_gives_each_word_its_window() -> None:
    assert around(np.array([7, 8, 9]), 2).tolist() == [
        [7, -1, -1, 8, 9],
        [8, -1, 7, 9, -1],
        [9, 7, 8, -1, -1],
    ]


def test_the_sample_is_capped_fixed_by_its_seed_and_from_all_over_the_text() -> None:
    text: Any = TextInMemory(100_000)
    sample = sample_neighbourhoods(text, window=2, seed=1)
    assert len(sample.centres) == neighbours.MOST_CENTRES
    assert sample.contexts.shape == (neighbours.MOST_CENTRES, 4)
    assert torch.equal(sample.centres, sample_neighbourhoods(text, window=2, seed=1).centres)
    assert not torch.equal(sample.centres, sample_neighbourhoods(text, window=2, seed=2).centres)
    assert torch.equal(sample.first(10).centres, sample.centres[:10])


def test_words_alone_give_no_sample() -> None:
    text: Any = TextInMemory(4)
    text.sentences = text.sentences[:, :1] + np.array([[0, V, V, V, V]])  # one known word among unknown ones
    assert len(sample_neighbourhoods(text, window=2, seed=0).centres) == 0


def test_perplexity_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two candidates besides the three specials, one query per row; the second row has one target only."""
    monkeypatch.setattr(neighbours, "MOST_LOGITS", 5)
    outputs = torch.tensor([[9.0], [9.0], [9.0], [0.0], [1.0]])
    bias = torch.tensor([5.0, 5.0, 5.0, math.log(2), 0.0])
    queries, targets = torch.tensor([[0.0], [math.log(2)]]), torch.tensor([[3, 4], [4, -1]])
    # Row 1: odds 2 : 1. Row 2: odds 2 : 2.
    expected = (3 / 2 * 3 * 2) ** (1 / 3)
    assert softmax_perplexity(queries, targets, outputs, bias) == pytest.approx(expected)


def test_unigram_perplexity_by_hand() -> None:
    counts = np.array([0, 0, 0, 2, 4], np.int64)  # 3/8 and 5/8 with one added
    assert unigram_perplexity(torch.tensor([[3, 4], [-1, 4]]), counts) == pytest.approx(
        (8 / 3 * 8 / 5 * 8 / 5) ** (1 / 3)
    )
