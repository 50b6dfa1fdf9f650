from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.encoders.base import Encoder
from headstart.encoders.representations import Layers, chosen
from headstart.encoders.static import Static, StaticConfig
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary

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
