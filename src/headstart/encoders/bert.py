"""BERT's encoder (Devlin et al. 2019): one transformer that sees both sides of every piece at every layer."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from headstart.config import Section
from headstart.cores import alone
from headstart.encoders.bert_in_use import block_in_use
from headstart.encoders.dropout import Dropout
from headstart.encoders.layout import Layout, on_parts
from headstart.encoders.linear import Linear
from headstart.encoders.representations import Layers, Representations, Tokens, chosen
from headstart.errors import DataError

PUBLISHED_DEVIATION, PUBLISHED_WIDTH = 0.02, 768


class BertConfig(Section):
    """The shape of a BERT."""

    layers: int = Field(ge=1)
    """Transformer blocks."""

    width: int = Field(ge=1)
    """Width of every representation."""

    heads: int = Field(ge=1)
    """Attention heads per block."""

    inner: int = Field(ge=1)
    """Width inside a block's feed-forward network."""

    positions: int = Field(default=512, ge=1)
    """Longest sequence, in pieces."""

    segments: int = Field(default=2, ge=1)
    """Segment embeddings."""

    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of embeddings and block outputs dropped in training."""

    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of attention weights dropped in training."""

    norm_eps: float = Field(default=1e-12, gt=0)
    """Added to the variance in every LayerNorm."""

    @model_validator(mode="after")
    def heads_share_the_width(self) -> BertConfig:
        if self.width % self.heads:
            raise ValueError(f"encoder.width must divide evenly by encoder.heads; got {self.width} / {self.heads}")
        return self


BERT_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"layers": 2, "width": 128, "heads": 2, "inner": 512},
    "mini": {"layers": 4, "width": 256, "heads": 4, "inner": 1024},
    "small": {"layers": 4, "width": 512, "heads": 8, "inner": 2048},
    "medium": {"layers": 8, "width": 512, "heads": 8, "inner": 2048},
    "base": {"layers": 12, "width": 768, "heads": 12, "inner": 3072},
    "large": {"layers": 24, "width": 1024, "heads": 16, "inner": 4096},
}


class Bert(nn.Module):
    """Embeddings, then `layers` blocks. R_0 is the embedding layer, R_k the output of block k."""

    divides_batches = True
    """Trained on several cores, each is best given sequences of its own."""

    def __init__(self, config: BertConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.words = nn.Embedding(vocabulary_size, config.width)
        self.positions = nn.Embedding(config.positions, config.width)
        self.segments = nn.Embedding(config.segments, config.width)
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.pooler = Linear(config.width, config.width)
        self.apply(initialise)

    @property
    def shape(self) -> tuple[int, int]:
        """K and D of its representations."""
        return self.config.layers + 1, self.config.width

    def forward(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> Representations:
        """ids, mask, segments: (B, T) -> layers (K, B, T, D), K = blocks + 1 unless only some are wanted."""
        return Representations(torch.stack(self.hidden_states(ids, mask, segments, layers)), mask)

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        """R_0 .. R_L, each (B, T, D), zero at padding, without the copy that stacking them makes.

        In use, where nothing is dropped and no gradient is wanted, every core reads a part of the sequences.
        """
        if self.training or torch.is_grad_enabled():
            self.check_length(ids.shape[1])
            layout = Layout.of(mask)
            return [layout.pad(state) for state in self._states(ids, layout, segments, layers)]
        return self.tokens(ids, mask, segments, layers).padded(mask)

    def tokens(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        """The same without padding, for use: every core reads a part of the sequences.

        wanted: (B, T), by default all; the highest of the layers may hold anything at the other tokens.
        """
        self.check_length(ids.shape[1])

        def states_of(ids: Tensor, mask: Tensor, segments: Tensor | None, wanted: Tensor | None) -> list[Tensor]:
            return self._states(ids, Layout.of(mask), segments, layers, wanted)

        return on_parts(states_of, ids, mask, segments, wanted)

    def _states(
        self, ids: Tensor, layout: Layout, segments: Tensor | None, layers: Layers, wanted: Tensor | None = None
    ) -> list[Tensor]:
        """Of the real pieces, each (N, D). Blocks above the highest layer that is asked for are left out."""
        numbers = chosen(list(range(len(self.blocks) + 1)), layers)
        rows = None if wanted is None else layout.unpad(wanted).nonzero().squeeze(1)
        x = self.embed(ids, segments, layout)
        states = {0: x}
        for number, block in enumerate(self.blocks[: max(numbers, default=0)], start=1):
            # Layers below the top are always finished: a layer has the same bits whichever others are asked for.
            x = block(x, layout, rows if block is self.blocks[-1] else None)
            if number in numbers:
                states[number] = x
        return [states[number] for number in numbers]

    def embed(self, ids: Tensor, segments: Tensor | None, layout: Layout) -> Tensor:
        """(B, T) -> (N, D), the real pieces one after the other."""
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        segment = self.segments.weight[0] if segments is None else self.segments(layout.unpad(segments))
        x = self.words_of(layout.unpad(ids)) + self.positions(layout.unpad(places)) + segment
        embedded: Tensor = self.dropout(self.norm(x))
        return embedded

    def words_of(self, ids: Tensor) -> Tensor:
        """A share of a batch meets few words, so its gradient is kept to their rows."""
        return F.embedding(ids, self.words.weight, sparse=alone())

    def check_length(self, T: int) -> None:
        if self.config.positions < T:
            raise DataError(
                f"A sequence of {T} pieces does not fit this BERT, which has {self.config.positions} positions. "
                "Cut the text shorter, or pretrain with a larger encoder.positions."
            )

    def stages(self) -> list[list[nn.Parameter]]:
        """Every parameter once, bottom to top: the embeddings, then each block, the last one with the pooler."""
        embeddings = nn.ModuleList([self.words, self.positions, self.segments, self.norm])
        stages = [list(stage.parameters()) for stage in (embeddings, *self.blocks)]
        stages[-1] += self.pooler.parameters()
        return stages

    def activation_floats(self, B: int, T: int) -> int:
        """About how many numbers a training step on a (B, T) batch holds at its peak."""
        config = self.config
        per_block = B * T * (10 * config.width + 3 * config.inner + 4 * config.heads * T)
        return config.layers * per_block + 4 * B * T * config.width

    def pooled(self, top: Tensor) -> Tensor:
        """The sequence's vector, from its first piece. top: (B, T, D) -> (B, D)."""
        return torch.tanh(self.pooler(top[:, 0]))


class Block(nn.Module):
    """x = LayerNorm(x + attention(x)); x = LayerNorm(x + feed_forward(x)), on real pieces only, (N, D)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query_key_value = Linear(config.width, 3 * config.width)
        self.attention_out = Linear(config.width, config.width)
        self.attention_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.inner = Linear(config.width, config.inner)
        self.outer = Linear(config.inner, config.width)
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.attention_dropout = Dropout(config.attention_dropout)

    def forward(self, x: Tensor, layout: Layout, wanted: Tensor | None = None) -> Tensor:
        """(N, D) -> (N, D). wanted: (n,), where not all rows are; what the others get may be anything."""
        in_use = not self.training and not torch.is_grad_enabled()
        if in_use and alone() and x.device.type == "cpu" and x.dtype == torch.float32:
            return block_in_use(self, x, layout, wanted)
        x = self.attention_norm(x + self.dropout(self.attention_out(self.attend(x, layout))))
        x = self.norm(x + self.dropout(self.outer(F.gelu(self.inner(x)))))
        return x

    def attend(self, x: Tensor, layout: Layout) -> Tensor:
        """(N, D) -> (N, D); only the attention itself sees the sequences side by side, with their padding."""
        (B, T), D = layout.shape, x.shape[-1]
        split = layout.pad(self.query_key_value(x)).view(B, T, 3, self.heads, D // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind()  # each (B, heads, T, D / heads)
        if self.training and self.attention_dropout.threshold:
            # The fused kernel cannot drop attention weights on a CPU.
            scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
            if layout.visible is not None:
                scores = scores.masked_fill(~layout.visible, -torch.inf)
            attended = self.attention_dropout(scores.softmax(dim=-1)) @ v
        else:
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=layout.visible)
        return layout.unpad(attended.transpose(1, 2).reshape(B, T, D))


def initialise(module: nn.Module) -> None:
    """As published at the published widths: normal, deviation 0.02, cut at two; biases zero; LayerNorm the identity.

    A linear layer narrower than BERT base gets the deviation at which its output varies as much as base's does; with
    0.02 the attention of a small network starts so flat that it takes long to leave the uniform.
    """
    if isinstance(module, nn.Linear | nn.Embedding):
        deviation = PUBLISHED_DEVIATION
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
            deviation *= max(1.0, math.sqrt(PUBLISHED_WIDTH / module.in_features))
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
