"""ELMo's encoder (Peters et al. 2018): words or characters -> word vectors -> two LSTM language models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, Self, cast

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from headstart.batches.rows import TextRow, encode_text, kept_tokens
from headstart.config import Depth, Section, Table, Width, resolve
from headstart.cores import on_cores
from headstart.encoders.base import Encoder
from headstart.encoders.character_network import Activation, CharacterNetwork
from headstart.encoders.kernels.dropout import Dropout
from headstart.encoders.kernels.packing import Packing
from headstart.encoders.kernels.prefix_tree import PrefixTree
from headstart.encoders.lstm import LstmLayer
from headstart.encoders.representations import Layers, Tokens
from headstart.encoders.stateful import LstmState, run_from
from headstart.encoders.token_layer import TokenLayer
from headstart.encoders.word_table import SpelledWords, WordTable
from headstart.errors import ConfigError
from headstart.text.tokenizer import Tokenizer
from headstart.text.vocabulary import END_ID, SENTENCE_END, SENTENCE_START, START_ID

PUBLISHED_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
CHARACTERS_PER_WORD = 50
TokenKind = Literal["characters", "words", "both"]
NAME_OF_TOKENS = {"characters": "characters", "words": "words", "both": "words"}
"""The name of the token layer in the weights; that of characters is older than the others."""


MOST_FILTERS = 1 << 20
"""Of one width, as of every `Width`."""


class ElmoConfig(Section):
    """The shape of an ELMo."""

    cell: Width
    """LSTM cells per direction and layer."""

    projection: Width
    """Width of one direction's output, and of a word's vector."""

    layers: Depth = 2
    """LSTM layers."""

    tokens: TokenKind = "characters"
    """A word's first vector: from its characters, from a table of words, or from the table where the word is in it."""

    directions: Literal["both", "forward"] = "both"
    """Read the sentence both ways, or forward only."""

    filters: list[list[int]] = PUBLISHED_FILTERS
    """Character filters, as [width, how many] pairs."""

    char_width: Width = 16
    """Width of a character's embedding."""

    activation: Activation = "relu"
    """Activation of the character filters: relu or tanh."""

    highway: int = Field(default=2, ge=0, le=100)
    """Highway layers over the character filters."""

    cell_clip: float | None = Field(default=3.0, gt=0, le=1e30)
    """Bound on the LSTM's cells."""

    projection_clip: float | None = Field(default=3.0, gt=0, le=1e30)
    """Bound on the LSTM's outputs."""

    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the input of every LSTM layer, and of the softmax, that is dropped in training."""

    residual: bool = True
    """Add a layer's input to its output, from the second layer on."""

    @model_validator(mode="after")
    def filters_are_pairs(self) -> ElmoConfig:
        pairs = all(
            len(pair) == 2 and 1 <= pair[0] <= CHARACTERS_PER_WORD and 1 <= pair[1] <= MOST_FILTERS
            for pair in self.filters
        )
        if not self.filters or not pairs:
            raise ValueError(
                f"encoder.filters must be [width, how many] pairs with widths of 1 to {CHARACTERS_PER_WORD}, "
                f"such as [[1, 32], [2, 64]]; got {self.filters}"
            )
        return self


ELMO_SIZES: dict[str, Table] = {
    "tiny": {
        "tokens": "both",
        "cell": 256,
        "projection": 128,
        "filters": [[1, 16], [2, 32], [3, 64], [4, 64], [5, 64]],
        "highway": 1,
    },
    "mini": {
        "tokens": "both",
        "cell": 512,
        "projection": 128,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128], [6, 128]],
        "highway": 1,
    },
    "small": {"tokens": "both", "cell": 1024, "projection": 128, "filters": PUBLISHED_FILTERS, "highway": 1},
    "original": {"cell": 4096, "projection": 512, "filters": PUBLISHED_FILTERS, "highway": 2},
}


class Elmo(Encoder):
    """R_0 is the word's vector from its characters, R_k the output of LSTM layer k, directions side by side.

    A sequence starts and ends with the marks of a sentence. The LSTM's state is zero before every sequence, so that a
    sentence's vectors depend on that sentence alone.
    """

    kind = "elmo"
    title = "ELMo"
    description = "An ELMo: a forward and a backward LSTM language model."
    perplexity_note = (
        "perplexity per word (sentence ends included, words outside the vocabulary as one class); the figure without a "
        "direction is the mean of the two"
    )
    Config = ElmoConfig
    sizes = ELMO_SIZES
    marks = 2

    config: ElmoConfig

    def __init__(self, config: ElmoConfig, vocabulary_size: int = 0) -> None:
        """vocabulary_size: rows of the table of words; not needed where words are spelled by their characters alone."""
        super().__init__()
        self.config = config
        self.directions = 2 if config.directions == "both" else 1
        self.add_module(NAME_OF_TOKENS[config.tokens], token_layer(config, vocabulary_size))
        self.layers = nn.ModuleList(
            LstmLayer(
                config.projection,
                config.cell,
                config.projection,
                self.directions,
                config.cell_clip,
                config.projection_clip,
            )
            for _ in range(config.layers)
        )
        self.dropout = Dropout(config.dropout)

    @classmethod
    def build(cls, settings: Table, vocabulary_size: int) -> Self:
        return cls(resolve(ElmoConfig, settings), vocabulary_size)

    @property
    def tokens(self) -> TokenLayer:
        return cast("TokenLayer", self.get_submodule(NAME_OF_TOKENS[self.config.tokens]))

    @property
    def shape(self) -> tuple[int, int]:
        return self.config.layers + 1, self.directions * self.config.projection

    @property
    def batch_tokens(self) -> int:
        """Each step of the LSTM is one matrix product, which is faster per row the more rows it has."""
        return max(2_048, (1 << 20) // self.config.projection)

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        """R_0 .. R_L, each (B, T, D). The word's vector is repeated once per direction, so all have one width.

        Always in float32: over a long sentence the rounding errors of bfloat16 states would add up.
        """
        with torch.autocast(ids.device.type, enabled=False):
            words = self.tokens(ids) * mask[..., None]
            packing = Packing.of(mask, self.directions)
            outputs = self._outputs(packing.pack(words), packing)
            return [
                packing.unpack(outputs[k - 1]) if k else words.repeat(1, 1, self.directions)
                for k in self._numbers(layers)
            ]

    def _outputs(self, x: Tensor, packing: Packing) -> list[Tensor]:
        """The output of each LSTM layer, packed. x: (directions, N, P)."""
        outputs = []
        for depth, layer in enumerate(self.layers):
            # As the original: a layer's input is dropped before it meets both the cell and the residual.
            x = self.dropout(x)
            y = layer(x, packing.sizes)
            x = x + y if depth and self.config.residual else y
            outputs.append(x)
        return outputs

    def infer(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        """Each direction runs on a core of its own, and a prefix that sentences share is computed once."""
        lengths = mask.sum(dim=1)
        starts = lengths.cumsum(0) - lengths
        ahead, back = steps_per_direction(mask if wanted is None else wanted & mask, lengths)
        with torch.autocast(ids.device.type, enabled=False):
            vectors, words = self.tokens.distinct(ids[mask], keep=True)
            sides = [(starts, ahead, 1), (starts + lengths - 1, back, -1)][: self.directions]
            numbers = self._numbers(layers)
            found = on_cores([partial(self._infer, n, numbers, vectors, words, *side) for n, side in enumerate(sides)])
            return Tokens([torch.cat(halves, dim=1) for halves in zip(*found, strict=True)], starts)

    def _infer(
        self,
        direction: int,
        layers: list[int],
        vectors: Tensor,
        words: Tensor,
        starts: Tensor,
        steps: Tensor,
        stride: int,
    ) -> list[Tensor]:
        """One direction of some layers, each (tokens, P). starts, steps, stride: see `PrefixTree.of`."""
        tree = PrefixTree.of(words, starts, steps, stride)
        x = vectors.index_select(0, tree.words)
        states = [x]
        for depth, layer in enumerate(self.layers):
            y = cast("LstmLayer", layer).infer(x, direction, tree.sizes, tree.parents)
            x = x + y if depth and self.config.residual else y
            states.append(x)
        return [states[k].index_select(0, tree.node_of_token) for k in layers]

    def clear_cache(self) -> None:
        self.tokens.forget()

    def drop_given_vectors(self) -> None:
        if isinstance(self.tokens, CharacterNetwork):
            self.tokens.fixed = None

    def infer_from(
        self, state: LstmState | None, ids: Tensor, mask: Tensor, segments: Tensor | None = None
    ) -> tuple[list[Tensor], LstmState]:
        """R_0 .. R_L without dropout, from the given LSTM state on, and the state after: row i continues row i.

        state: None is zero everywhere. Rows that this batch does not have keep their state; new rows start from zero.
        The backward direction reads each row from its last token, from the state it had after the first one before.
        """
        config, like = self.config, next(self.parameters()).detach()
        before = state or LstmState.empty(config.layers, self.directions, config.projection, config.cell, like)
        after = before.of_rows(len(ids))
        with torch.no_grad(), torch.autocast(ids.device.type, enabled=False):
            words = self.tokens(ids) * mask[..., None]
            packing = Packing.of(mask, self.directions)
            rows = packing.index[0, : packing.sizes[0]] // mask.shape[1]
            x = packing.pack(words)
            states = [words.repeat(1, 1, self.directions)]
            for depth, layer in enumerate(self.layers):
                h, c = after.h[depth][:, rows], after.c[depth][:, rows]
                y = run_from(cast("LstmLayer", layer), x, packing.sizes, h, c)
                after.h[depth][:, rows], after.c[depth][:, rows] = h, c
                x = x + y if depth and config.residual else y
                states.append(packing.unpack(x))
        return states, after

    def _numbers(self, layers: Layers) -> list[int]:
        K = len(self.layers) + 1
        return list(range(K)) if layers is None else [k % K for k in layers]

    def layer_groups(self) -> list[list[nn.Parameter]]:
        """The token layer, then each LSTM layer."""
        return [list(group.parameters()) for group in (self.tokens, *self.layers)]

    def activation_floats(self, B: int, T: int) -> int:
        config, tokens = self.config, B * T
        lstm = config.layers * self.directions * tokens * (11 * config.cell + 6 * config.projection)
        return self.tokens.activation_floats(tokens) + lstm

    def row(self, tokenizer: Tokenizer, text: str | Sequence[str], longest: int | None) -> TextRow:
        """<S> w1 .. wn </S>: numbers of words, (n + 2,), or their characters, (n + 2, C)."""
        encoding = encode_text(tokenizer, text)
        units = encoding.units
        kept = kept_tokens(len(units), longest)
        words = [SENTENCE_START, *(units[i] for i in kept), SENTENCE_END]
        numbers = np.concatenate([[START_ID], encoding.ids[kept], [END_ID]])
        return TextRow(self.tokens.ids_of(words, numbers), 1 + np.arange(len(kept)), len(kept) < len(units))


def token_layer(config: ElmoConfig, vocabulary_size: int) -> TokenLayer:
    if config.tokens != "characters" and vocabulary_size < 1:
        raise ConfigError(f"An ELMo with encoder.tokens '{config.tokens}' needs the size of its vocabulary.")
    if config.tokens == "words":
        return WordTable(vocabulary_size, config.projection)
    characters = CharacterNetwork(
        config.filters, config.char_width, config.highway, config.projection, config.activation
    )
    return characters if config.tokens == "characters" else SpelledWords(vocabulary_size, config.projection, characters)


def steps_per_direction(wanted: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """How many tokens each direction must read of each sequence, (B,) each: from its side up to the last one wanted.

    At least one where the sequence has one, because every token must be given some state.
    """
    places = torch.arange(wanted.shape[1], device=wanted.device)
    ahead = ((places + 1) * wanted).amax(dim=1)
    back = ((lengths[:, None] - places) * wanted).amax(dim=1)
    least = lengths.clamp(max=1)
    return torch.maximum(ahead, least), torch.maximum(back, least)
