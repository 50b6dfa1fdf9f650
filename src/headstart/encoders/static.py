"""One vector per word, whatever its context (word2vec, GloVe)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from headstart.config import Section
from headstart.encoders.representations import Layers, Representations, Tokens, chosen


class StaticConfig(Section):
    """Word vectors."""

    dim: int = Field(default=100, ge=1)
    """Width of a word's vector."""


class Static(nn.Module):
    """A table of word vectors: R_0 only."""

    def __init__(self, config: StaticConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        # word2vec's own start: uniform, with a width-free expected norm.
        self.vectors = nn.Parameter(torch.empty(vocabulary_size, config.dim).uniform_(-0.5, 0.5) / config.dim)

    @property
    def shape(self) -> tuple[int, int]:
        """K and D of its representations."""
        return 1, self.config.dim

    def forward(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> Representations:
        """ids, mask: (B, T) -> layers (1, B, T, D), zero at padding."""
        vectors = F.embedding(ids, self.vectors).masked_fill(~mask[..., None], 0.0)
        return Representations(torch.stack(chosen([vectors], layers)), mask)

    def tokens(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        """The same without padding, for use."""
        lengths = mask.sum(dim=1)
        return Tokens(chosen([F.embedding(ids[mask], self.vectors)], layers), lengths.cumsum(0) - lengths)

    def stages(self) -> list[list[nn.Parameter]]:
        """Every parameter once, bottom to top: the vectors."""
        return [[self.vectors]]
