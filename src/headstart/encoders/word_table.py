"""A table of word vectors as ELMo's token layer: the original program's other choice, and the quicker to train.

Letters: N tokens, U distinct words, V vocabulary, P width of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.kernels.prefix_tree import order_by_appearance
from headstart.encoders.token_layer import TokenLayer
from headstart.text.characters import MAX_CHARACTERS, characters_of
from headstart.text.vocabulary import UNKNOWN_ID

SMALLEST_VARIANCE = 1e-6


class WordTable(TokenLayer):
    """A row for each word of the vocabulary; every other word has the row of <UNK>. ids: (..,) word numbers."""

    def __init__(self, vocabulary_size: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocabulary_size, width))

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)

    def distinct(self, ids: Tensor, keep: bool = False) -> tuple[Tensor, Tensor]:
        first, numbers = order_by_appearance(torch.unique(ids, return_inverse=True)[1])
        return F.embedding(ids[first], self.weight), numbers

    def ids_of(self, words: Sequence[str], numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers

    def activation_floats(self, tokens: int) -> int:
        return 2 * tokens * self.weight.shape[1]


class SpelledWords(WordTable):
    """A row for each word of the vocabulary; the character network spells every other word.

    In pretraining the network learns to give the table's words their rows (Pinter et al. 2017), so that a word that was
    never seen gets a vector like those of words that are written alike. ids: (.., 1 + 50), the word's number and, only
    where that is <UNK>, its characters.
    """

    def __init__(self, vocabulary_size: int, width: int, characters: CharacterNetwork) -> None:
        super().__init__(vocabulary_size, width)
        self.characters = characters

    def forward(self, ids: Tensor) -> Tensor:
        unknown = ids[..., 0] == UNKNOWN_ID
        found = F.embedding(ids[..., 0], self.weight)
        if not bool(unknown.any()):
            return found
        spelled = self.characters(ids[..., 1:][unknown][None])[0]
        return found.index_put((unknown,), spelled.to(found.dtype))

    def distinct(self, ids: Tensor, keep: bool = False) -> tuple[Tensor, Tensor]:
        unknown = ids[:, 0] == UNKNOWN_ID
        vectors, numbers = super().distinct(ids[:, 0], keep)
        if not bool(unknown.any()):
            return vectors, numbers
        # The table's words keep their numbers; the spelled ones follow them.
        spelled, of_unknown = self.characters.distinct(ids[unknown, 1:], keep)
        numbers = numbers.index_put((unknown,), len(vectors) + of_unknown)
        return torch.cat([vectors, spelled.to(vectors.dtype)]), numbers

    def ids_of(self, words: Sequence[str], numbers: NDArray[Any]) -> NDArray[Any]:
        ids = np.zeros((len(words), 1 + MAX_CHARACTERS), dtype=np.int64)
        ids[:, 0] = numbers
        for place in np.flatnonzero(ids[:, 0] == UNKNOWN_ID).tolist():
            ids[place, 1:] = characters_of(words[place])
        return ids

    def spelling_loss(self, words: Tensor, characters: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Summed over the words: how far the network's vector is from the row, as a share of the rows' variance.

        words: (n,) numbers; characters: (n, 50); drawn: the words whose rows' variance it is, left out the same ones.
        The rows do not move towards the spelling.
        """
        rows = F.embedding(words, self.weight).detach()
        among = rows if drawn is None else F.embedding(drawn, self.weight).detach()
        with torch.autocast(rows.device.type, enabled=False):
            errors = (self.characters.words(characters) - rows).square()
        return errors.sum() / among.var(0, unbiased=False).sum().clamp(min=SMALLEST_VARIANCE)

    def activation_floats(self, tokens: int) -> int:
        """One word in ten is assumed to be spelled."""
        return super().activation_floats(tokens) + self.characters.activation_floats(tokens // 10)

    def forget(self) -> None:
        self.characters.forget()
