"""ELMo's objective: a forward and a backward language model that share the token layer and the softmax."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from pydantic import Field
from torch import nn

from headstart.config import Section
from headstart.cores import on_cores
from headstart.encoders.elmo import Elmo
from headstart.encoders.kernels.dropout import Dropout
from headstart.encoders.word_table import SpelledWords, WordTable
from headstart.heads.language_model import LossTerm, NextWordHead
from headstart.heads.softmax import CHUNK
from headstart.pretraining.elmo.batches import LanguageModelBatch, Unit
from headstart.pretraining.objective import Objective


class LanguageModelConfig(Section):
    """ELMo's two language models."""

    softmax: Literal["auto", "full", "sampled"] = "auto"
    """Loss over every word, or over sampled words in training; auto samples when words exceed twice `samples`."""
    samples: int = Field(default=8192, ge=1)
    """Words drawn per direction and step when the softmax is sampled."""
    tie: bool = False
    """The softmax shares the table of words, which needs encoder.tokens words or both."""
    unit: Unit = "sentence"
    """Where the LSTM starts from zero: at each sentence, or at each window of a document."""
    longest: int = Field(default=128, ge=2)
    """Words in the longest sentence or window; longer ones are cut."""

    def samples_of(self, vocabulary_size: int) -> int | None:
        """Words to sample from a vocabulary of this size; None for the full softmax."""
        if self.softmax == "auto":
            return self.samples if vocabulary_size > 2 * self.samples else None
        return self.samples if self.softmax == "sampled" else None


class ElmoLanguageModel(Objective[LanguageModelBatch]):
    """Each forward state predicts the word after it, each backward state the word before it."""

    def __init__(self, encoder: Elmo, vocabulary_size: int, config: LanguageModelConfig | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        config = config or LanguageModelConfig()
        samples = config.samples_of(vocabulary_size)
        self.head = NextWordHead(encoder.config.projection, vocabulary_size, samples, tied=config.tie)
        self.dropout = Dropout(encoder.config.dropout)

    def forward(self, batch: LanguageModelBatch, generator: torch.Generator | None = None) -> dict[str, LossTerm]:
        """For <S> w1 .. wn </S>, forward sums over w1 .. </S>, backward over wn .. <S>."""
        top = self.encoder.hidden_states(batch.ids, batch.mask, layers=[-1])[0]
        followed = batch.mask[:, 1:] & batch.mask[:, :-1]
        width = self.encoder.config.projection
        states = {"forward": (top[:, :-1, :width][followed], batch.targets[:, 1:][followed])}
        if self.encoder.config.directions == "both":
            states["backward"] = top[:, 1:, width:][followed], batch.targets[:, :-1][followed]
        table = self.encoder.tokens.weight if isinstance(self.encoder.tokens, WordTable) else None
        # Each direction's softmax runs on a core of its own. Each also draws from a generator of its own, so that the
        # samples do not depend on which direction comes first.
        works = [
            partial(self.head, self.dropout(h), words, None if generator is None else spawned(generator), table)
            for h, words in states.values()
        ]
        terms = dict(zip(states, on_cores(works), strict=True))
        if self.training and batch.spelled is not None and isinstance(self.encoder.tokens, SpelledWords):
            spelled = batch.spelled
            loss = self.encoder.tokens.spelling_loss(spelled.words, spelled.characters, spelled.drawn)
            terms["spelling"] = LossTerm(loss, len(spelled.words), None)
        return terms

    def skip(self, generator: torch.Generator) -> None:
        for _ in range(2 if self.encoder.config.directions == "both" else 1):
            spawned(generator)

    def prepare_sharding(self) -> Sequence[nn.Module]:
        return list(self.encoder.layers)

    def activation_floats(self, B: int, T: int) -> int:
        """The encoder's, a chunk of logits and its gradient, and about ten arrays of sampled logits."""
        sampled = 10 * B * T * (self.head.samples or 0)
        return self.encoder.activation_floats(B, T) + 2 * min(B * T, CHUNK) * len(self.head.bias) + sampled


def spawned(generator: torch.Generator) -> torch.Generator:
    """A new generator that is seeded by the next number of this one."""
    seed = int(torch.randint(torch.iinfo(torch.int64).max, (), generator=generator, device=generator.device))
    return torch.Generator(generator.device).manual_seed(seed)
