"""The head of semantic roles: for a marked predicate the role of every word, for no mark which words are predicates.

Letters: B batch, W words, D width, C tags of roles. A word has C + 2 scores: of its tags, of not being a predicate and
of being one.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from headstart.config import Width
from headstart.heads.crf import LinearChainCrf
from headstart.heads.recurrent import Pooled
from headstart.heads.tag import Decoder, LegalTags, TagHeadConfig
from headstart.heads.two_texts import WordReader

FURTHEST = 12
"""Words from the predicate from which on all places have the same mark."""


class RoleHeadConfig(TagHeadConfig):
    """The network between the words' vectors and the roles."""

    decoder: Decoder = "constrained"

    mark: Literal["embedding", "segment"] = "embedding"
    """How the predicate is marked: embedding: a vector beside each word's says where the predicate is from there, and
    the output layer reads the predicate's states beside the word's; segment: its pieces are BERT's second segment, so
    that the encoder reads the mark, once for every predicate of a sentence."""

    mark_width: Width = 32
    """Width of the vector that marks a word."""

    @property
    def reads_together(self) -> bool:
        return self.mark == "segment"


class RoleHead(WordReader):
    """Words' vectors and the predicate's mark -> scores of tags and of predicates, (B, W, C + 2)."""

    def __init__(self, inputs: int, joined: int, legal: LegalTags, config: RoleHeadConfig) -> None:
        width = config.mark_width if config.mark == "embedding" else 0
        super().__init__(inputs + width, joined, config)
        self.config = config
        self.mark = nn.Embedding(2 * FURTHEST + 2, width) if width else None
        # The states of the predicate beside the word's, and a layer that compares them: 41.5 F1 instead of 38.2 with
        # 1,000 sentences and GloVe, 55.8 instead of 53.1 with a frozen BERT.
        self.compared = nn.Linear(2 * self.out_width, self.out_width) if width else None
        self.roles = nn.Linear(self.out_width, len(legal.start))
        self.predicates = nn.Linear(self.out_width, 2)
        self.crf = LinearChainCrf(len(legal.start), legal.start, legal.transition, legal.end)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """parts: (B, W), 1 at the predicate."""
        if parts is None:
            raise ValueError("This head needs parts, (B, W): 1 at the words of the predicate, 0 elsewhere.")
        if self.mark is not None:
            x = torch.cat([x, self.mark(places_from(parts))], dim=2)
        words = self.dropout(self.words(x, mask, joined))
        asked = words
        if self.compared is not None:
            of_predicate = (words * parts[..., None]).sum(dim=1, keepdim=True)
            beside = torch.cat([words, of_predicate.expand_as(words)], dim=2)
            asked = self.dropout(self.compared(beside).relu())
        return torch.cat([self.roles(asked), self.predicates(words)], dim=2)

    def loss(self, scores: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
        """The negative log-likelihood, summed over rows or words. gold: (B, W), columns of the scores; ()."""
        C = scores.shape[2] - 2
        marked = gold[:, 0] < C  # a row asks for roles throughout or for predicates throughout
        words = mask & ~marked[:, None]
        loss = nn.functional.cross_entropy(scores[words][:, C:], gold[words] - C, reduction="sum")
        tags, rows = scores[marked][..., :C], mask[marked]
        if self.config.decoder == "crf":
            return loss + self.crf.loss(tags, rows, gold[marked])
        return loss + nn.functional.cross_entropy(tags[rows], gold[marked][rows], reduction="sum")

    def unused_parameters(self) -> list[nn.Parameter]:
        return [] if self.config.decoder == "crf" else list(self.crf.parameters())


def places_from(parts: Tensor) -> Tensor:
    """Where each word is from the predicate, as rows of the marks' table; 0 in a row without one. parts: (B, W)."""
    words = torch.arange(parts.shape[1], device=parts.device)
    predicate = parts.argmax(dim=1, keepdim=True)
    places = (words - predicate).clamp(-FURTHEST, FURTHEST) + FURTHEST + 1
    return torch.where(parts.any(dim=1, keepdim=True), places, 0)
