"""ELMo's character network: a word's vector from its spelling alone (Kim et al. 2016).

Letters: U distinct words, C characters per word, E width of a character, F filters in all, P projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.cores import on_cores
from headstart.encoders.kernels.linear import Linear
from headstart.encoders.kernels.spelling import BATCH_PADDING, distinct_rows, lengths_of, max_over_word, trim
from headstart.encoders.kernels.word_cache import FixedWords, WordCache
from headstart.encoders.token_layer import TokenLayer
from headstart.text.characters import N_CHARACTERS, characters_of

CARRYING_BIAS = -2.0
"""The gate starts at sigmoid(-2) = 0.12: a new highway passes most of its input on unchanged."""

Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "tanh": torch.tanh}


class CharacterNetwork(TokenLayer):
    """Character embeddings, convolutions of several widths, max over the word, highway layers, a projection.

    Initial values are the original code's: characters uniform in [-1, 1], filters in [-0.05, 0.05] (before a tanh:
    normal, as the dense layers), dense layers normal with variance 1 / inputs, and highway gates that start almost
    closed. `activation` is that of the filters; the highway layers always have a relu, as in the original.
    """

    def __init__(
        self,
        filters: list[list[int]],
        char_width: int,
        highway: int,
        projection: int,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.activation = activation
        self.fixed: FixedWords | None = None
        self.cache = WordCache()
        self.widest = max(width for width, _ in filters)
        n_filters = sum(count for _, count in filters)
        self.characters = nn.Parameter(torch.empty(N_CHARACTERS, char_width).uniform_(-1, 1))
        self.filters = nn.ParameterList(
            initial_filter(torch.empty(width, char_width, count), activation) for width, count in filters
        )
        self.filter_bias = nn.Parameter(torch.zeros(n_filters))
        self.highways = nn.ModuleList(Highway(n_filters) for _ in range(highway))
        self.projection = Linear(n_filters, projection)
        nn.init.normal_(self.projection.weight, std=1 / math.sqrt(n_filters))
        nn.init.zeros_(self.projection.bias)
        with torch.no_grad():
            self.characters[BATCH_PADDING] = 0

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T, C) -> (B, T, P), computing each distinct word once."""
        vectors, numbers = self.distinct(ids.flatten(0, -2))
        return vectors.index_select(0, numbers).view(*ids.shape[:-1], -1)

    def distinct(self, ids: Tensor, keep: bool = False) -> tuple[Tensor, Tensor]:
        """ids: (N, C) -> (U, P), (N,).

        keep: at inference, use and fill the cache of word vectors. Cached vectors may differ in the last bit from those
        that would be computed now, because rounding depends on the size of a batch.
        """
        distinct, numbers = distinct_rows(ids)
        may_learn = torch.is_grad_enabled() and any(p.requires_grad for p in self.parameters())
        if may_learn:
            self.forget()  # a fused optimiser changes the weights without raising their versions
        if may_learn and self.training:
            self.fixed = None  # vectors of the network as it was before this training
        vectors = self.words(distinct) if self.training or may_learn else self._look_up(distinct, keep)
        return vectors, numbers

    def words(self, characters: Tensor) -> Tensor:
        """characters: (U, C) -> (U, P)."""
        lengths = lengths_of(characters)
        # Longest first, so that at every position the words that reach it are the first ones.
        lengths, order = lengths.sort(descending=True, stable=True)
        characters = trim(characters, lengths, self.widest).long().index_select(0, order)
        maxima = [max_over_word(characters, lengths, self.characters, weight) for weight in self.filters]
        x = ACTIVATIONS[self.activation](torch.cat(maxima, dim=1) + self.filter_bias)
        for highway in self.highways:
            x = highway(x)
        projected: Tensor = self.projection(x)
        return projected.index_select(0, order.argsort())

    def remember(self, characters: Tensor, vectors: Tensor) -> None:
        """Look these words up from now on instead of computing them. characters: (V, C); vectors: (V, P).

        They are not part of the weights: they are not saved, not used while the network may learn, and dropped once it
        is trained.
        """
        self.fixed = FixedWords(characters, vectors)

    def forget(self) -> None:
        """Empty the cache. Words that were given to `remember` stay."""
        self.cache = WordCache()

    def ids_of(self, words: Sequence[str], numbers: NDArray[Any]) -> NDArray[Any]:
        return np.stack([characters_of(word) for word in words])

    def activation_floats(self, tokens: int) -> int:
        """Half the words of a batch are assumed to be distinct."""
        return tokens // 2 * (6 + 4 * len(self.highways)) * self.projection.in_features

    def _look_up(self, distinct: Tensor, keep: bool) -> Tensor:
        """`words`, with fixed and cached vectors where there are any. (U, C) -> (U, P)."""
        compute = self._cached if keep else self._on_cores
        if self.fixed is None:
            return compute(distinct)
        known, vectors = self.fixed.look_up(distinct)
        found = vectors.new_empty(len(distinct), vectors.shape[1])
        found[known] = vectors
        if not bool(known.all()):
            found[~known] = compute(distinct[~known]).to(found.dtype)
        return found

    def _cached(self, distinct: Tensor) -> Tensor:
        # torch counts every in-place change of a tensor, so other versions mean other weights and an outdated cache.
        versions = tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in self.parameters())
        if self.cache.weights != versions:
            self.cache = WordCache(versions)
        return self.cache.vectors_of(distinct, self._on_cores)

    def _on_cores(self, distinct: Tensor) -> Tensor:
        """`words`, with every core computing some of them."""
        cores = torch.get_num_threads() if distinct.device.type == "cpu" else 1
        parts = [distinct[part::cores] for part in range(min(cores, len(distinct)))]
        found = distinct.new_empty(len(distinct), self.projection.out_features, dtype=self.projection.weight.dtype)
        for part, vectors in enumerate(on_cores([partial(self.words, mine) for mine in parts])):
            found[part::cores] = vectors
        return found


def initial_filter(weight: Tensor, activation: Activation) -> Tensor:
    """weight: (width, E, n)."""
    if activation == "tanh":
        return weight.normal_(std=1 / math.sqrt(weight.shape[0] * weight.shape[1]))
    return weight.uniform_(-0.05, 0.05)


class Highway(nn.Module):
    """y = gate * relu(transform x) + (1 - gate) * x (Srivastava et al. 2015)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform_and_gate = Linear(width, 2 * width)  # one product for both
        nn.init.normal_(self.transform_and_gate.weight, std=1 / math.sqrt(width))
        with torch.no_grad():
            self.transform_and_gate.bias[:width] = 0
            self.transform_and_gate.bias[width:] = CARRYING_BIAS

    def forward(self, x: Tensor) -> Tensor:
        transform, gate = self.transform_and_gate(x).chunk(2, dim=-1)
        return torch.lerp(x, F.relu(transform), torch.sigmoid(gate))
