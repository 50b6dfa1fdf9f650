"""The head of sequence tagging: a recurrent network over the words, a linear layer to the tags, legal sequences only.

Letters: B batch, W words, D width, C tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.heads.crf import LinearChainCrf
from headstart.heads.recurrent import Head, Pooled, RecurrentConfig

Decoder = Literal["crf", "constrained"]


class TagHeadConfig(RecurrentConfig):
    """The network between the words' vectors and the tags."""

    decoder: Decoder = "crf"
    """crf: transitions between tags are learned; constrained: each word's tag is learned alone, and the best legal
    sequence is decoded."""


@dataclass(frozen=True, slots=True)
class LegalTags:
    """Which tags may begin a sentence (C,), follow each other (C, C) and end it (C,)."""

    start: NDArray[np.bool_]
    transition: NDArray[np.bool_]
    end: NDArray[np.bool_]


class TagHead(Head):
    """Emissions of each word, and the transitions between tags."""

    def __init__(self, inputs: int, joined: int, legal: LegalTags, config: TagHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        self.config = config
        self.output = nn.Linear(self.out_width, len(legal.start))
        self.crf = LinearChainCrf(len(legal.start), legal.start, legal.transition, legal.end)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """-> emissions (B, W, C)."""
        emissions: Tensor = self.output(self.dropout(self.words(x, mask, joined)))
        return emissions

    def loss(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """The negative log-likelihood of the gold tags, summed over words (constrained) or sentences (crf). ()."""
        if self.config.decoder == "crf":
            return self.crf.loss(emissions, mask, tags)
        return nn.functional.cross_entropy(emissions[mask], tags[mask], reduction="sum")

    @property
    def is_plain(self) -> bool:
        return self.recurrent is None and self.config.decoder == "constrained"

    def unused_parameters(self) -> list[nn.Parameter]:
        return [] if self.config.decoder == "crf" else list(self.crf.parameters())
