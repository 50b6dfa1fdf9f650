"""The heads of language models: the next word (ELMo) and masked pieces (BERT)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.errors import ConfigError
from headstart.heads.softmax import LogUniform, sampled_softmax_loss, softmax_loss

NEXT_SENTENCE_CLASSES = 2


class LossTerm(NamedTuple):
    """total: summed loss in nats, with its gradient; count: predictions it sums over; correct: right ones, if known.

    A tuple, because torch's FSDP looks for the tensors of a model's output in tuples, lists and dictionaries alone.
    """

    total: Tensor
    count: int  # type: ignore[assignment]  # it hides tuple.count, which nobody needs here
    correct: int | None


class NextWordHead(nn.Module):
    """One softmax for both directions. h: (N, D) of one direction, targets: (N,) -> the loss of that direction.

    tied: its matrix is the encoder's table of words. The table's rows are about sqrt(D) times as long as the rows of an
    output matrix, which is taken out of h.
    """

    weight: nn.Parameter | None

    def __init__(
        self, width_per_direction: int, vocabulary_size: int, samples: int | None = None, *, tied: bool = False
    ) -> None:
        """samples: words that training draws for a sampled softmax; None for the full one."""
        super().__init__()
        self.scale = 1 / math.sqrt(width_per_direction)
        own = None if tied else nn.Parameter(torch.randn(vocabulary_size, width_per_direction) * self.scale)
        self.register_parameter("weight", own)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.samples = samples
        self.sampler = LogUniform(vocabulary_size)

    def forward(
        self,
        h: Tensor,
        targets: Tensor,
        generator: torch.Generator | None = None,
        table: Tensor | None = None,
    ) -> LossTerm:
        """Evaluation always uses the full softmax; only training may sample. table: (V, D), for a tied head."""
        h, weight = self._factors(h, table)
        if self.training and self.samples is not None:
            total = sampled_softmax_loss(h, weight, self.bias, targets, self.sampler, self.samples, generator)
            return LossTerm(total, len(targets), None)
        loss = softmax_loss(h, weight, self.bias, targets)
        return LossTerm(loss.total, len(targets), loss.correct)

    def logits(self, h: Tensor, table: Tensor | None = None) -> Tensor:
        """h: (..., D) of one direction -> (..., V)."""
        h, weight = self._factors(h, table)
        return F.linear(h, weight, self.bias)

    def _factors(self, h: Tensor, table: Tensor | None) -> tuple[Tensor, Tensor]:
        """The two factors of the logits: the states, and a row per word."""
        if self.weight is not None:
            return h, self.weight
        if table is None:
            raise ConfigError("A softmax that is tied to the encoder's table of words needs that table.")
        return h * self.scale, table


class MaskedLMHead(nn.Module):
    """BERT's masked-LM head: dense, GELU, LayerNorm, then the word embeddings as output matrix, plus a bias per piece.

    untied: the output has a matrix of its own, `decoder`, instead of the word embeddings.
    """

    def __init__(self, width: int, vocabulary_size: int, norm_eps: float, *, untied: bool = False) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        self.decoder = nn.Parameter(torch.zeros(vocabulary_size, width)) if untied else None

    def transform(self, h: Tensor) -> Tensor:
        transformed: Tensor = self.norm(F.gelu(self.dense(h)))
        return transformed

    def output_matrix(self, word_embeddings: Tensor) -> Tensor:
        return word_embeddings if self.decoder is None else self.decoder

    def logits(self, h: Tensor, word_embeddings: Tensor) -> Tensor:
        """h: (..., D) -> (..., V)."""
        return F.linear(self.transform(h), self.output_matrix(word_embeddings), self.bias)

    def forward(self, h: Tensor, word_embeddings: Tensor, gold: Tensor) -> LossTerm:
        """h: (M, D) at the masked positions only; gold: (M,)."""
        loss = softmax_loss(self.transform(h), self.output_matrix(word_embeddings), self.bias, gold)
        return LossTerm(loss.total, len(gold), loss.correct)
