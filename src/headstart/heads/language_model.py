"""The pretraining objectives: next word both ways (ELMo), hidden pieces and next sentence (BERT)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from headstart.batches.batch import LanguageModelBatch, MaskedBatch
from headstart.config import Section
from headstart.cores import on_cores
from headstart.encoders.bert import Bert, initialise
from headstart.encoders.elmo import Elmo
from headstart.encoders.kernels.dropout import Dropout
from headstart.heads.softmax import CHUNK, LogUniform, sampled_softmax_loss, softmax_loss

NEXT_SENTENCE_CLASSES = 2


@dataclass(frozen=True, slots=True)
class LossTerm:
    """total: summed loss in nats, with its gradient; count: what it sums over; correct: best guesses, where known."""

    total: Tensor
    count: int
    correct: int | None


class LanguageModelConfig(Section):
    """The softmax of a next-word language model."""

    softmax: Literal["auto", "full", "sampled"] = "auto"
    """Loss over every word, or over sampled words in training; auto samples when words exceed twice `samples`."""

    samples: int = Field(default=8192, ge=1)
    """Words drawn per direction and step when the softmax is sampled."""

    def is_sampled(self, vocabulary_size: int) -> bool:
        if self.softmax == "auto":
            return vocabulary_size > 2 * self.samples
        return self.softmax == "sampled"


class NextWordHead(nn.Module):
    """One softmax for both directions. h: (N, D) of one direction, targets: (N,) -> the loss of that direction."""

    def __init__(
        self, width_per_direction: int, vocabulary_size: int, config: LanguageModelConfig | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocabulary_size, width_per_direction) / math.sqrt(width_per_direction))
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))
        config = config or LanguageModelConfig()
        self.samples = config.samples if config.is_sampled(vocabulary_size) else None
        self.sampler = LogUniform(vocabulary_size)

    def forward(self, h: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> LossTerm:
        """Scores are always exact in evaluation; only training may sample."""
        if self.training and self.samples is not None:
            total = sampled_softmax_loss(h, self.weight, self.bias, targets, self.sampler, self.samples, generator)
            return LossTerm(total, len(targets), None)
        loss = softmax_loss(h, self.weight, self.bias, targets)
        return LossTerm(loss.total, len(targets), loss.correct)


class ElmoLanguageModel(nn.Module):
    """ELMo's objective: each state forward predicts the word after it, each state backward the word before it."""

    def __init__(self, encoder: Elmo, vocabulary_size: int, config: LanguageModelConfig | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = NextWordHead(encoder.config.projection, vocabulary_size, config)
        self.dropout = Dropout(encoder.config.dropout)

    def forward(self, batch: LanguageModelBatch, generator: torch.Generator | None = None) -> dict[str, LossTerm]:
        """For <S> w1 .. wn </S>, forward sums over w1 .. </S>, backward over wn .. <S>. `generator` draws samples."""
        top = self.encoder.hidden_states(batch.characters, batch.mask)[-1]
        followed = batch.mask[:, 1:] & batch.mask[:, :-1]
        width = self.encoder.config.projection
        states = {"forward": (top[:, :-1, :width][followed], batch.targets[:, 1:][followed])}
        if self.encoder.config.directions == "both":
            states["backward"] = top[:, 1:, width:][followed], batch.targets[:, :-1][followed]
        # Each direction's softmax on a core of its own, with samples that do not hang on which of them is first.
        works = [
            partial(self.head, self.dropout(h), words, None if generator is None else spawned(generator))
            for h, words in states.values()
        ]
        return dict(zip(states, on_cores(works), strict=True))

    def activation_floats(self, B: int, T: int) -> int:
        """The encoder's, one chunk of logits twice (evaluation's, too), and about ten arrays of sampled logits."""
        sampled = 10 * B * T * (self.head.samples or 0)
        return self.encoder.activation_floats(B, T) + 2 * min(B * T, CHUNK) * len(self.head.bias) + sampled


def spawned(generator: torch.Generator) -> torch.Generator:
    """Another generator, whose numbers follow from this one's next."""
    seed = int(torch.randint(torch.iinfo(torch.int64).max, (), generator=generator, device=generator.device))
    return torch.Generator(generator.device).manual_seed(seed)


class HiddenPieceHead(nn.Module):
    """BERT's masked-LM head: dense, GELU, LayerNorm, then the word embeddings once more, plus a bias per word.

    untied: the output has a matrix of its own, `decoder`, in the place of the word embeddings.
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
        """h: (M, D) at the hidden pieces only; gold: (M,)."""
        loss = softmax_loss(self.transform(h), self.output_matrix(word_embeddings), self.bias, gold)
        return LossTerm(loss.total, len(gold), loss.correct)


class MaskedLanguageModel(nn.Module):
    """BERT's objectives. The word embeddings serve input and output, and get their gradient from both."""

    def __init__(self, encoder: Bert) -> None:
        super().__init__()
        config = encoder.config
        self.encoder = encoder
        self.masked = HiddenPieceHead(config.width, encoder.vocabulary_size, config.norm_eps)
        self.next = nn.Linear(config.width, NEXT_SENTENCE_CLASSES)
        for linear in (self.masked.dense, self.next):
            initialise(linear)

    def forward(self, batch: MaskedBatch, generator: torch.Generator | None = None) -> dict[str, LossTerm]:
        """Nothing is sampled here; `generator` is taken so that every objective is called alike."""
        top = self.encoder.hidden_states(batch.ids, batch.mask, batch.segments)[-1]
        hidden = top.flatten(0, 1).index_select(0, batch.positions)
        terms = {"masked": self.masked(hidden, self.encoder.words.weight, batch.gold)}
        if batch.is_next is not None:
            logits = self.next(self.encoder.pooled(top))
            label = (~batch.is_next).long()  # BERT's class 0 is "B follows A"
            total = F.cross_entropy(logits, label, reduction="sum")
            terms["next"] = LossTerm(total, len(label), int((logits.argmax(dim=1) == label).sum()))
        return terms

    def activation_floats(self, B: int, T: int) -> int:
        """The encoder's, and the logits' of one chunk, twice."""
        return self.encoder.activation_floats(B, T) + 2 * min(B * T, CHUNK) * self.encoder.vocabulary_size
