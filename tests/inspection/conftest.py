from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.encoders.representations import Layers, chosen
from headstart.encoders.static import Static, StaticConfig
from headstart.heads.language_model import MaskedLMHead, NextWordHead
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.text.wordpiece import SPECIALS as PIECE_SPECIALS
from headstart.text.wordpiece import build_wordpiece

VectorsOf = Callable[[list[str]], Tensor]
"""The words of a sentence -> their vectors in all layers, (K, T, D)."""


class Toy(Static):
    """An encoder whose vectors are what a function says of a sentence."""

    kind = "toy"
    contextual = True

    def __init__(
        self, shape: tuple[int, int], words: Sequence[str], vectors_of: VectorsOf, longest: int | None
    ) -> None:
        super().__init__(StaticConfig(dim=shape[1]), len(words))
        self.layers, self.words, self.vectors_of, self.most = shape[0], words, vectors_of, longest

    @property
    def shape(self) -> tuple[int, int]:
        return self.layers, self.config.dim

    @property
    def longest(self) -> int | None:
        return self.most

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        found = torch.zeros(self.shape[0], *ids.shape, self.shape[1])
        for number, (row, length) in enumerate(zip(ids.tolist(), mask.sum(1).tolist(), strict=True)):
            found[:, number, :length] = self.vectors_of([self.words[i] for i in row[:length]])
        return chosen(list(found), layers)

    infer = Encoder.infer


@pytest.fixture(scope="session")
def toy() -> Callable[..., Pretrained]:
    """(words it knows, (K, D), what its vectors are, longest sentence) -> a pretrained toy."""

    def build(
        known: Sequence[str], shape: tuple[int, int], vectors_of: VectorsOf, longest: int | None = None
    ) -> Pretrained:
        words = (*SPECIALS, *known)
        vocabulary = Vocabulary(words, np.arange(len(words), 0, -1), lowercase=False)
        return Pretrained(Toy(shape, words, vectors_of, longest), WordTokenizer(vocabulary), name="toy")

    return build


PIECES = ("the", "sun", "su", "flower", "set", ".", "##flower", "##set", "##n", "##s")
WORDS = ("the", "sun", "set", "is", "a", "flower", ".")


@pytest.fixture(scope="session")
def tiny_bert() -> Pretrained:
    """A masked language model of ten pieces that reads 16; its predictions are random, and far from even."""
    encoder = Bert.build(
        {"layers": 1, "width": 8, "heads": 2, "inner": 8, "positions": 16}, len(PIECE_SPECIALS) + len(PIECES)
    )
    head = MaskedLMHead(8, len(PIECE_SPECIALS) + len(PIECES), 1e-12)
    randomise(encoder, head)
    tokenizer = build_wordpiece([*PIECE_SPECIALS, *PIECES], lowercase=True)
    return Pretrained(encoder.eval(), tokenizer, {"masked": head.eval()}, name="tiny")


@pytest.fixture(scope="session")
def tiny_elmo(tiny_encoder: Callable[..., Encoder]) -> Callable[..., Pretrained]:
    """(directions, of what is generated the word that the bias favours) -> two language models of seven words."""

    def build(directions: str = "both", favour: str | None = None) -> Pretrained:
        words = (*SPECIALS, *WORDS)
        encoder = tiny_encoder("elmo", len(words), directions=directions, tokens="words")
        assert isinstance(encoder, Elmo)
        head = NextWordHead(encoder.config.projection, len(words))
        randomise(encoder, head)
        with torch.no_grad():
            head.bias.mul_(0.1)
            if favour is not None:
                head.bias[words.index(favour)] = 1_000.0
        vocabulary = Vocabulary(words, np.arange(len(words), 0, -1), lowercase=True)
        return Pretrained(encoder.eval(), WordTokenizer(vocabulary), {"head": head.eval()}, name="tiny")

    return build


def randomise(*parts: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for part in parts:
            for parameter in part.parameters():
                parameter.normal_(0, 0.7, generator=generator)
