"""One vector per word, whatever its context (word2vec, GloVe)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.batches.rows import TextRow, encode_text, kept_tokens
from headstart.config import Section, Table, Width, resolve
from headstart.encoders.base import Encoder
from headstart.encoders.representations import Layers, Tokens, chosen
from headstart.text.tokenizer import Tokenizer


class StaticConfig(Section):
    """Word vectors."""

    dim: Width = 100
    """Width of a word's vector."""


class Static(Encoder):
    """A table of word vectors: R_0 only."""

    kind = "static"
    title = "Word vectors"
    description = "Word vectors: one vector per word, whatever its context."
    perplexity_note = (
        "perplexity of a word's neighbours under the softmax its objective implies; not comparable with a language "
        "model's"
    )
    Config = StaticConfig
    contextual = False
    run_prefix = ""

    config: StaticConfig

    def __init__(self, config: StaticConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        # word2vec's own initialisation: uniform, with an expected norm that does not depend on the width.
        self.vectors = nn.Parameter(torch.empty(vocabulary_size, config.dim).uniform_(-0.5, 0.5) / config.dim)

    @classmethod
    def build(cls, settings: Table, vocabulary_size: int) -> Self:
        return cls(resolve(StaticConfig, settings), vocabulary_size)

    @property
    def shape(self) -> tuple[int, int]:
        return 1, self.config.dim

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        """ids, mask: (B, T) -> [(B, T, D)], zero at padding."""
        return chosen([F.embedding(ids, self.vectors).masked_fill(~mask[..., None], 0.0)], layers)

    def infer(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        lengths = mask.sum(dim=1)
        return Tokens(chosen([F.embedding(ids[mask], self.vectors)], layers), lengths.cumsum(0) - lengths)

    def layer_groups(self) -> list[list[nn.Parameter]]:
        return [[self.vectors]]

    def activation_floats(self, B: int, T: int) -> int:
        return 2 * B * T * self.config.dim

    def word_vectors(self) -> Tensor:
        return self.vectors.detach()

    def row(self, tokenizer: Tokenizer, text: str | Sequence[str], longest: int | None) -> TextRow:
        ids = encode_text(tokenizer, text).ids
        kept = kept_tokens(len(ids), longest)
        return TextRow(ids[kept], np.arange(len(kept)), len(kept) < len(ids))

    @classmethod
    def settings_in_run(cls, table: Table, where: Path) -> Table:
        """Runs that were pretrained here have the width in [objective]; imported ones have a section [encoder]."""
        objective = table.get("objective")
        if "encoder" not in table and isinstance(objective, dict) and "dim" in objective:
            return {"dim": objective["dim"]}
        return super().settings_in_run(table, where)

    @classmethod
    def weights_in_run(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A run also keeps what the vectors were trained against, under names of their own."""
        return {name: weights[name] for name in ("vectors",) if name in weights}
