"""BERT's encoder (Devlin et al. 2019): one transformer that sees both sides of every piece at every layer."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from headstart.batches.rows import Joined, TextRow, kept_of_pair, kept_tokens
from headstart.config import Depth, Section, Table, Width, resolve
from headstart.cores import alone
from headstart.encoders.base import Encoder
from headstart.encoders.kernels.bert_block import infer_block
from headstart.encoders.kernels.dropout import Dropout
from headstart.encoders.kernels.int8 import Int8Block
from headstart.encoders.kernels.layout import Layout, on_parts
from headstart.encoders.kernels.linear import Linear
from headstart.encoders.representations import Layers, Tokens, chosen
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.text.encoding import Encoding, UnitIds
from headstart.text.tokenizer import Tokenizer
from headstart.text.wordpiece import WordPieceTokenizer

PUBLISHED_DEVIATION, PUBLISHED_WIDTH = 0.02, 768


class BertConfig(Section):
    """The shape of a BERT."""

    layers: Depth
    """Transformer blocks."""

    width: Width
    """Width of every representation."""

    heads: Width
    """Attention heads per block."""

    inner: Width
    """Width inside a block's feed-forward network."""

    positions: Width = 512
    """Longest sequence, in pieces."""

    segments: Width = 2
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


BERT_SIZES: dict[str, Table] = {
    "tiny": {"layers": 2, "width": 128, "heads": 2, "inner": 512},
    "mini": {"layers": 4, "width": 256, "heads": 4, "inner": 1024},
    "small": {"layers": 4, "width": 512, "heads": 8, "inner": 2048},
    "medium": {"layers": 8, "width": 512, "heads": 8, "inner": 2048},
    "base": {"layers": 12, "width": 768, "heads": 12, "inner": 3072},
    "large": {"layers": 24, "width": 1024, "heads": 16, "inner": 4096},
}


class Bert(Encoder):
    """Embeddings, then `layers` blocks. R_0 is the embedding layer, R_k the output of block k."""

    kind = "bert"
    title = "BERT"
    description = "A BERT: a transformer trained to restore hidden pieces, aware of both sides at every layer."
    units = "pieces"
    perplexity_note = "perplexity and accuracy over the hidden pieces only; not comparable with a language model's"
    Config = BertConfig
    sizes = BERT_SIZES
    marks = 2
    data_parallel = True
    pools = True
    joins = True

    one_part = False
    """Whether a batch is always encoded as one part: two threads cannot bring the same parameters together."""

    config: BertConfig

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

    @classmethod
    def build(cls, settings: Table, vocabulary_size: int) -> Self:
        return cls(resolve(BertConfig, settings), vocabulary_size)

    @property
    def shape(self) -> tuple[int, int]:
        return self.config.layers + 1, self.config.width

    @property
    def longest(self) -> int:
        return self.config.positions

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        """R_0 .. R_L, each (B, T, D), zero at padding. In evaluation without gradients they come from `infer`."""
        if self.training or torch.is_grad_enabled() or self.one_part:
            self.check_length(ids.shape[1])
            layout = Layout.of(mask)
            return [layout.pad(state) for state in self._states(ids, layout, segments, layers)]
        return self.infer(ids, mask, segments, layers).padded(mask)

    def infer(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        """Every core encodes some of the sequences, without padding."""
        self.check_length(ids.shape[1])

        def states_of(ids: Tensor, mask: Tensor, segments: Tensor | None, wanted: Tensor | None) -> list[Tensor]:
            return self._states(ids, Layout.of(mask), segments, layers, wanted)

        return on_parts(states_of, ids, mask, segments, wanted)

    def _states(
        self, ids: Tensor, layout: Layout, segments: Tensor | None, layers: Layers, wanted: Tensor | None = None
    ) -> list[Tensor]:
        """The wanted layers of the real pieces, each (N, D). Blocks above the highest of them do not run."""
        numbers = chosen(list(range(len(self.blocks) + 1)), layers)
        rows = None if wanted is None else layout.unpad(wanted).nonzero().squeeze(1)
        x = self.embed(ids, segments, layout)
        states = {0: x}
        for number, block in enumerate(self.blocks[: max(numbers, default=0)], start=1):
            # Only the last block skips rows that are not wanted. Below it attention needs every row, and a layer must
            # have the same bits whichever others are asked for.
            x = block(x, layout, rows if block is self.blocks[-1] else None)
            if number in numbers:
                states[number] = x
        return [states[number] for number in numbers]

    def attention(self, ids: Tensor, mask: Tensor, segments: Tensor | None = None) -> tuple[list[Tensor], Tensor]:
        """From the state below each block, by the formula that training with dropout uses: the fused kernels of
        inference never hold the probabilities."""
        self.check_length(ids.shape[1])
        layout = Layout.of(mask)
        states = self._states(ids, layout, segments, None)
        found = []
        for block, below in zip(self.blocks, states[:-1], strict=True):
            if not isinstance(block, Block):
                raise ConfigError("An int8 BERT does not tell its attention. Open it in float32.")
            found.append(block.probabilities(below, layout) * mask[:, None, :, None])
        return [layout.pad(state) for state in states], torch.stack(found)

    def embed(self, ids: Tensor, segments: Tensor | None, layout: Layout) -> Tensor:
        """(B, T) -> (N, D): words + positions + segments of the real pieces, normalised."""
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        segment = self.segments.weight[0] if segments is None else self.segments(layout.unpad(segments))
        x = self.words_of(layout.unpad(ids)) + self.positions(layout.unpad(places)) + segment
        embedded: Tensor = self.dropout(self.norm(x))
        return embedded

    def words_of(self, ids: Tensor) -> Tensor:
        """The word embeddings. A core's share of a batch has few distinct words, so there the gradient is sparse."""
        return F.embedding(ids, self.words.weight, sparse=alone())

    def check_length(self, T: int) -> None:
        if self.config.positions < T:
            raise DataError(
                f"A sequence of {T} pieces does not fit this BERT, which has {self.config.positions} positions. "
                "Cut the text shorter, or pretrain with a larger encoder.positions."
            )

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """The embeddings, then each block, the last one with the pooler."""
        embeddings = nn.ModuleList([self.words, self.positions, self.segments, self.norm])
        groups = [list(group.parameters()) for group in (embeddings, *self.blocks)]
        groups[-1] += self.pooler.parameters()
        return groups

    def activation_floats(self, B: int, T: int) -> int:
        config = self.config
        per_block = B * T * (10 * config.width + 3 * config.inner + 4 * config.heads * T)
        return config.layers * per_block + 4 * B * T * config.width

    def pooled(self, top: Tensor) -> Tensor:
        """tanh of a linear layer on the first piece, [CLS]. top: (B, T, D) -> (B, D)."""
        return torch.tanh(self.pooler(top[:, 0]))

    def pooler_parameters(self) -> list[nn.Parameter]:
        return list(self.pooler.parameters())

    def quantised(self) -> Bert:
        """A copy whose blocks multiply in int8. Embeddings, norms and the pooler are shared with the original."""
        shared = {id(tensor): tensor for tensor in [*self.parameters(), *self.buffers()]}
        twin = copy.deepcopy(self, shared)
        twin.blocks = nn.ModuleList(Int8Block(block) if isinstance(block, Block) else block for block in twin.blocks)
        return twin

    def row(self, tokenizer: Tokenizer, text: str | Sequence[str], longest: int | None) -> TextRow:
        """[CLS] pieces [SEP]; a word stands where its first piece does."""
        tokenizer = wordpiece(tokenizer)
        pieces = pieces_of(tokenizer, text)
        n = len(pieces.ids)
        kept = kept_tokens(n, longest)
        ids = np.empty(len(kept) + self.marks, dtype=np.int64)
        ids[0], ids[1:-1], ids[-1] = tokenizer.cls, pieces.ids[kept], tokenizer.sep
        return TextRow(ids, 1 + first_pieces(pieces.words[kept]), len(kept) < n)

    def pair_row(
        self, tokenizer: Tokenizer, pair: Joined, longest: int | None, *, every_piece: bool = False
    ) -> TextRow:
        """[CLS] a [SEP] b [SEP], with segment 0 up to the first [SEP]. One of `longest` goes to the second [SEP]."""
        tokenizer = wordpiece(tokenizer)
        a, b = (pieces_of(tokenizer, text) for text in (pair.first, pair.second))
        n_a, n_b = kept_of_pair(len(a.ids), len(b.ids), None if longest is None else max(0, longest - 1))
        sep = [tokenizer.sep]
        ids = np.concatenate([[tokenizer.cls], a.ids[:n_a], sep, b.ids[:n_b], sep])
        segments = np.repeat([0, 1], [n_a + 2, n_b + 1])
        kept = (a.words[:n_a], b.words[:n_b])
        first, second = (np.arange(len(words)) if every_piece else first_pieces(words) for words in kept)
        starts = np.concatenate([1 + first, n_a + 2 + second])
        cut = n_a < len(a.ids) or n_b < len(b.ids)
        return TextRow(ids, starts, cut, segments, np.repeat([0, 1], [len(first), len(second)]))


def wordpiece(tokenizer: Tokenizer) -> WordPieceTokenizer:
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise CheckpointError(f"BERT reads word pieces, and this tokenizer is of the kind '{tokenizer.kind}'.")
    return tokenizer


def pieces_of(tokenizer: WordPieceTokenizer, text: str | Sequence[str]) -> Encoding | UnitIds:
    """A row needs neither the pieces' spelling nor their places in the text, which take most of the time to find."""
    return tokenizer.encode_ids(text) if isinstance(text, str) else tokenizer.encode_words(text)


def first_pieces(words: NDArray[np.int32]) -> NDArray[np.int64]:
    """Positions of the pieces that begin a word. words: (n,), the word that each piece belongs to."""
    begins = np.ones(len(words), dtype=bool)
    np.not_equal(words[1:], words[:-1], out=begins[1:])
    return np.flatnonzero(begins)


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
        """(N, D) -> (N, D). wanted: (n,) rows that are read, by default all; the others may get any values."""
        inference = not self.training and not torch.is_grad_enabled()
        if inference and alone() and x.device.type == "cpu" and x.dtype == torch.float32:
            return infer_block(self, x, layout, wanted)
        x = self.attention_norm(x + self.dropout(self.attention_out(self.attend(x, layout))))
        x = self.norm(x + self.dropout(self.outer(F.gelu(self.inner(x)))))
        return x

    def attend(self, x: Tensor, layout: Layout) -> Tensor:
        """(N, D) -> (N, D). Sequences are padded for the attention itself only."""
        (B, T), D = layout.shape, x.shape[-1]
        q, k, v = self.split(x, layout)
        if self.training and self.attention_dropout.threshold:
            # The fused kernel cannot drop attention weights on a CPU.
            attended = self.attention_dropout(softmax_of(q, k, layout)) @ v
        else:
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=layout.visible)
        return layout.unpad(attended.transpose(1, 2).reshape(B, T, D))

    def probabilities(self, x: Tensor, layout: Layout) -> Tensor:
        """(N, D) -> (B, heads, T, T): how much each piece attends to every other."""
        q, k, _ = self.split(x, layout)
        return softmax_of(q, k, layout)

    def split(self, x: Tensor, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
        """(N, D) -> queries, keys and values, each (B, heads, T, D / heads)."""
        (B, T), D = layout.shape, x.shape[-1]
        q, k, v = layout.pad(self.query_key_value(x)).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        return q, k, v


def softmax_of(q: Tensor, k: Tensor, layout: Layout) -> Tensor:
    """softmax(q k^T / sqrt(D / heads)) over the real pieces. q, k: (B, heads, T, D / heads) -> (B, heads, T, T)."""
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if layout.visible is not None:
        scores = scores.masked_fill(~layout.visible, -torch.inf)
    return scores.softmax(dim=-1)


def initialise(module: nn.Module) -> None:
    """As published at the published widths: normal, deviation 0.02, truncated at two deviations; biases zero.

    A linear layer narrower than BERT base gets a larger deviation, so that its output varies as much as base's does.
    With 0.02 a small network's attention starts almost uniform and takes long to leave that.
    """
    if isinstance(module, nn.Linear | nn.Embedding):
        deviation = PUBLISHED_DEVIATION
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
            deviation *= max(1.0, math.sqrt(PUBLISHED_WIDTH / module.in_features))
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
