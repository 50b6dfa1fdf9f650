"""The heads of sentence pairs: one vector of both texts, or their words aligned, compared and pooled.

Letters: B pairs, W words, S width of a word's states, C classes.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import model_validator
from torch import Tensor, nn

from headstart.config import Width
from headstart.heads.classify import ClassifyHead, ClassifyHeadConfig
from headstart.heads.pool import build_pool
from headstart.heads.recurrent import Head, Pooled
from headstart.heads.two_texts import TwoTexts, WordReader, each, soft_alignment, split


class PairHeadConfig(ClassifyHeadConfig):
    """The network between the vectors of two texts' words and the classes."""

    reads: Literal["together", "apart"] = "apart"
    """together: both texts in one sequence (BERT), whose own vector of the sequence is classified; apart: each text
    alone, then their words are aligned, compared and pooled."""

    pool: str = "first"
    """How the words of texts read together become one vector: first, last, mean, max, attention, or several."""

    compare: Width = 100
    """Of texts read apart, the width of the comparison of a word with what it is aligned to."""

    @model_validator(mode="after")
    def first_word_has_read_the_text(self) -> PairHeadConfig:
        if self.reads == "together":  # texts read apart are not pooled by `pool`
            super().first_word_has_read_the_text()  # type: ignore[operator]
        return self

    @property
    def reads_together(self) -> bool:
        return self.reads == "together"

    @property
    def reads_first_position(self) -> bool:
        return self.reads_together and super().reads_first_position

    @property
    def uses_encoder_pooling(self) -> bool:
        return self.reads_together and super().uses_encoder_pooling


class AlignedPairHead(WordReader):
    """ESIM (Chen et al. 2017): each text is read alone; each word is compared with the words of the other text that it
    is aligned to; the comparisons are read in turn and pooled. A text without words is zeros."""

    def __init__(self, inputs: int, joined: int, classes: int, config: PairHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        self.config = config
        # Vectors that no network has read are up to thousands wide, and as alike as what all words have in common.
        self.project = nn.Linear(self.out_width, config.compare) if self.recurrent is None else None
        S = self.out_width if self.project is None else config.compare
        weights = self.product_weights(joined) if self.project is None else torch.full((S,), S**-0.5)
        self.product = nn.Parameter(weights)
        self.compare = nn.Linear(4 * S, config.compare)
        self.composition = WordReader(config.compare, 0, config)
        self.pool = build_pool("mean+max", self.composition.out_width, 0)
        self.hidden = nn.Linear(2 * self.pool.out_width, config.compare)
        self.output = nn.Linear(config.compare, classes)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """-> logits (B, C)."""
        beside = None if joined is None else split(joined, mask, parts)
        words = self.states(split(x, mask, parts), beside)
        if self.project is not None:
            words = each(words, self.projected)
        a, b = words.first, words.second
        to_b, to_a = aligned(words, self.product)
        first = self.pooled(self.compared(a, to_b), words.first_mask)
        second = self.pooled(self.compared(b, to_a), words.second_mask)
        hidden = self.hidden(self.dropout(torch.cat([first, second], dim=1))).tanh()
        logits: Tensor = self.output(self.dropout(hidden))
        return logits

    def projected(self, words: Tensor, mask: Tensor) -> Tensor:
        """(B, W, D) -> (B, W, compare), zero at padding."""
        projected: Tensor = words if self.project is None else self.project(self.dropout(words))
        return projected.masked_fill(~mask[..., None], 0.0)

    def compared(self, a: Tensor, aligned: Tensor) -> Tensor:
        """ReLU(linear([a; a~; a - a~; a * a~])), (B, W, compare); anything at padding."""
        compared: Tensor = self.compare(torch.cat([a, aligned, a - aligned, a * aligned], dim=2)).relu()
        return compared

    def pooled(self, compared: Tensor, mask: Tensor) -> Tensor:
        """The mean and the maximum of what the second network reads in the comparisons of one text, (B, 2 S)."""
        pooled: Tensor = self.pool(self.composition(compared, mask), mask)
        return pooled


def aligned(words: TwoTexts, product: Tensor) -> tuple[Tensor, Tensor]:
    """For each word of a text the mean of the other text's words b_j, weighted by softmax_j(product . (a_i * b_j)).

    product: (S,). Of the first text's words, (B, W1, S), and of the second's, (B, W2, S).
    """
    a, b = words.first, words.second
    scores = (a * product) @ b.mT  # (B, W1, W2)
    to_b = soft_alignment(scores, words.second_mask[:, None]) @ b
    to_a = soft_alignment(scores.mT, words.first_mask[:, None]) @ a
    return to_b, to_a


def pair_head(inputs: int, joined: int, classes: int, config: PairHeadConfig) -> Head:
    head = ClassifyHead if config.reads_together else AlignedPairHead
    return head(inputs, joined, classes, config)
