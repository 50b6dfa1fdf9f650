"""Held-out perplexity of word vectors: how well they predict the neighbours of words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.text.shards import Shards
from headstart.text.vocabulary import SPECIALS

MOST_CENTRES = 2_000
BLOCK_UNITS = 1_000
MOST_BLOCKS = 200
MOST_LOGITS = 16_000_000
"""Logits computed at a time: 64 MB of float32."""


@dataclass(frozen=True, slots=True)
class Neighbourhoods:
    """Words of held-out text and what stands around them. centres: (N,); contexts: (N, 2 * window), -1 for nothing."""

    centres: Tensor
    contexts: Tensor

    def first(self, most: int | None) -> Neighbourhoods:
        """A smaller sample: the centres are in random order."""
        return Neighbourhoods(self.centres[:most], self.contexts[:most])


def sample_neighbourhoods(shards: Shards, window: int, seed: int) -> Neighbourhoods:
    """At most MOST_CENTRES words with a neighbour, drawn evenly over the text; the same ones for the same seed.

    Words outside the vocabulary are left out first, as in training.
    """
    rng = np.random.default_rng(seed_of(seed, "neighbourhoods"))
    n_blocks = -(-shards.n_units // BLOCK_UNITS)
    blocks = rng.choice(n_blocks, size=min(n_blocks, MOST_BLOCKS), replace=False) * BLOCK_UNITS
    found = [
        around(sentence[sentence < shards.vocabulary_size], window)
        for first in blocks.tolist()
        for sentence in shards.sentences_between(first, first + BLOCK_UNITS)
    ]
    every = np.concatenate([np.empty((0, 2 * window + 1), np.int64), *found])
    every = every[(every[:, 1:] >= 0).any(axis=1)]
    chosen = torch.from_numpy(rng.permutation(every)[:MOST_CENTRES])
    return Neighbourhoods(chosen[:, 0], chosen[:, 1:])


def around(sentence: NDArray[Any], window: int) -> NDArray[np.int64]:
    """(T, 1 + 2 * window): each word, then the words within the window on either side, -1 beyond the sentence."""
    padded = np.full(len(sentence) + 2 * window, -1, np.int64)
    padded[window : window + len(sentence)] = sentence
    offsets = np.array([0, *range(-window, 0), *range(1, window + 1)])
    neighbourhoods: NDArray[np.int64] = padded[window + np.arange(len(sentence))[:, None] + offsets]
    return neighbourhoods


def softmax_perplexity(queries: Tensor, targets: Tensor, outputs: Tensor, bias: Tensor) -> float:
    """exp of the mean of -log softmax(outputs q + bias)[target], every target counting the same.

    queries: (N, D); targets: (N, M), -1 for none; outputs: (V, D); bias: (V,). Special words are no candidates.
    """
    bias = bias.clone()
    bias[: len(SPECIALS)] = -math.inf
    rows = max(1, MOST_LOGITS // len(outputs))
    total, n_targets = 0.0, 0
    for q, target in zip(torch.split(queries, rows), torch.split(targets, rows), strict=True):
        log_p = torch.addmm(bias, q, outputs.T).log_softmax(dim=1)
        real = target >= 0
        total -= log_p.gather(1, target.clamp(min=0))[real].sum(dtype=torch.float64).item()
        n_targets += int(real.sum())
    return math.exp(total / n_targets)


def unigram_perplexity(targets: Tensor, counts: NDArray[np.int64]) -> float:
    """Perplexity of the same targets when each word is predicted by its count plus one: the baseline for any model."""
    smoothed = torch.from_numpy(counts.astype(np.float64)) + 1
    smoothed[: len(SPECIALS)] = 0
    log_p = smoothed.log() - smoothed.sum().log()
    return math.exp(-log_p[targets[targets >= 0]].mean().item())
