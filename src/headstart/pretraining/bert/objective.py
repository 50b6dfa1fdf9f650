"""BERT's two objectives: the masked language model and next-sentence prediction."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from headstart.encoders.bert import Bert, initialise
from headstart.heads.language_model import NEXT_SENTENCE_CLASSES, LossTerm, MaskedLMHead
from headstart.heads.softmax import CHUNK
from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.objective import Objective


class MaskedLanguageModel(Objective[MaskedBatch]):
    """The word embeddings are input and output matrix at once, and get their gradient from both uses."""

    def __init__(self, encoder: Bert) -> None:
        super().__init__()
        config = encoder.config
        self.encoder = encoder
        self.masked = MaskedLMHead(config.width, encoder.vocabulary_size, config.norm_eps)
        self.next = nn.Linear(config.width, NEXT_SENTENCE_CLASSES)
        for linear in (self.masked.dense, self.next):
            initialise(linear)

    def forward(self, batch: MaskedBatch, generator: torch.Generator | None = None) -> dict[str, LossTerm]:
        """Nothing is sampled here, so `generator` is not used."""
        top = self.encoder.hidden_states(batch.ids, batch.mask, batch.segments)[-1]
        # Logits at the masked positions only: they are a seventh of the tokens, and the softmax costs most.
        masked = top.flatten(0, 1).index_select(0, batch.positions)
        terms: dict[str, LossTerm] = {"masked": self.masked(masked, self.encoder.words.weight, batch.gold)}
        if batch.is_next is not None:
            logits = self.next(self.encoder.pooled(top))
            label = (~batch.is_next).long()  # BERT's class 0 is "B follows A"
            total = F.cross_entropy(logits, label, reduction="sum")
            terms["next"] = LossTerm(total, len(label), int((logits.argmax(dim=1) == label).sum()))
        return terms

    def prepare_sharding(self) -> Sequence[nn.Module]:
        self.encoder.one_part = True
        return list(self.encoder.blocks)

    def activation_floats(self, B: int, T: int) -> int:
        """The encoder's, and a chunk of logits with its gradient."""
        return self.encoder.activation_floats(B, T) + 2 * min(B * T, CHUNK) * self.encoder.vocabulary_size
