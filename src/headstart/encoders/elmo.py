"""ELMo's encoder (Peters et al. 2018): characters -> word vectors -> two LSTM language models, one per direction."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from headstart.config import Section
from headstart.cores import on_cores
from headstart.encoders.beginnings import Beginnings
from headstart.encoders.character_network import Activation, CharacterNetwork
from headstart.encoders.dropout import Dropout
from headstart.encoders.lstm import LstmLayer
from headstart.encoders.packing import Packing
from headstart.encoders.representations import Layers, Representations, Tokens

PUBLISHED_FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
CHARACTERS_PER_WORD = 50


class ElmoConfig(Section):
    """The shape of an ELMo."""

    cell: int = Field(ge=1)
    """LSTM cells per direction and layer."""

    projection: int = Field(ge=1)
    """Width of one direction's output, and of a word's vector."""

    layers: int = Field(default=2, ge=1)
    """LSTM layers."""

    directions: Literal["both", "forward"] = "both"
    """Read the sentence both ways, or forward only."""

    filters: list[list[int]] = PUBLISHED_FILTERS
    """Character filters, as [width, how many] pairs."""

    char_width: int = Field(default=16, ge=1)
    """Width of a character's embedding."""

    activation: Activation = "relu"
    """What the character filters' values go through: relu or tanh."""

    highway: int = Field(default=2, ge=0)
    """Highway layers over the character filters."""

    cell_clip: float | None = Field(default=3.0, gt=0)
    """Bound on the LSTM's cells."""

    projection_clip: float | None = Field(default=3.0, gt=0)
    """Bound on the LSTM's outputs."""

    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of every LSTM layer's input, and of the softmax's, dropped in training."""

    residual: bool = True
    """Add a layer's input to its output, from the second layer on."""

    @model_validator(mode="after")
    def filters_are_pairs(self) -> ElmoConfig:
        pairs = all(len(pair) == 2 and 1 <= pair[0] <= CHARACTERS_PER_WORD and pair[1] >= 1 for pair in self.filters)
        if not self.filters or not pairs:
            raise ValueError(
                f"encoder.filters must be [width, how many] pairs with widths of 1 to {CHARACTERS_PER_WORD}, "
                f"such as [[1, 32], [2, 64]]; got {self.filters}"
            )
        return self


ELMO_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {
        "cell": 256,
        "projection": 64,
        "filters": [[1, 16], [2, 32], [3, 64], [4, 64], [5, 64]],
        "highway": 1,
    },
    "mini": {
        "cell": 512,
        "projection": 128,
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128], [6, 128]],
        "highway": 1,
    },
    "small": {"cell": 1024, "projection": 128, "filters": PUBLISHED_FILTERS, "highway": 1},
    "original": {"cell": 4096, "projection": 512, "filters": PUBLISHED_FILTERS, "highway": 2},
}


class Elmo(nn.Module):
    """R_0 is the word's vector from its characters, R_k the output of LSTM layer k, directions side by side.

    A sequence starts and ends with its sentence marks, which the caller adds. Its state is zero before it, so that a
    sentence's vectors depend on that sentence alone.
    """

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config = config
        self.directions = 2 if config.directions == "both" else 1
        self.characters = CharacterNetwork(
            config.filters, config.char_width, config.highway, config.projection, config.activation
        )
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

    @property
    def shape(self) -> tuple[int, int]:
        """K and D of its representations."""
        return self.config.layers + 1, self.directions * self.config.projection

    @property
    def batch_units(self) -> int:
        """Tokens that are best encoded together: each step of the LSTM is one product, the better the more rows."""
        return max(2_048, (1 << 20) // self.config.projection)

    def forward(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> Representations:
        """ids: (B, T, C) characters; mask: (B, T) -> layers (K, B, T, D), zero at padding.

        K is the number of LSTM layers + 1, unless only some are wanted.
        """
        return Representations(torch.stack(self.hidden_states(ids, mask, layers=layers)), mask)

    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        """R_0 .. R_L, each (B, T, D). The word's vector is repeated once per direction, so all have one width.

        Always in float32: the states of a long sentence add up what bfloat16 rounds away.
        """
        with torch.autocast(ids.device.type, enabled=False):
            words = self.characters(ids) * mask[..., None]
            packing = Packing.of(mask, self.directions)
            outputs = self._outputs(packing.pack(words), packing)
            return [
                packing.unpack(outputs[k - 1]) if k else words.repeat(1, 1, self.directions)
                for k in self._wanted(layers)
            ]

    def tokens(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        """The same without padding, for use: each direction on a core of its own, every beginning read once."""
        lengths = mask.sum(dim=1)
        starts = lengths.cumsum(0) - lengths
        ahead, back = read_from_each_side(mask if wanted is None else wanted & mask, lengths)
        with torch.autocast(ids.device.type, enabled=False):
            vectors, words = self.characters.distinct(ids[mask], keep=True)
            sides = [(starts, ahead, 1), (starts + lengths - 1, back, -1)][: self.directions]
            numbers = self._wanted(layers)
            read = on_cores([partial(self._read, n, numbers, vectors, words, *side) for n, side in enumerate(sides)])
            return Tokens([torch.cat(halves, dim=1) for halves in zip(*read, strict=True)], starts)

    def _read(
        self,
        direction: int,
        layers: list[int],
        vectors: Tensor,
        words: Tensor,
        starts: Tensor,
        steps: Tensor,
        stride: int,
    ) -> list[Tensor]:
        """One direction of some layers, each (tokens, P). starts, steps, stride: see `Beginnings.of`."""
        beginnings = Beginnings.of(words, starts, steps, stride)
        x = vectors.index_select(0, beginnings.words)
        states = [x]
        for depth, layer in enumerate(self.layers):
            y = cast("LstmLayer", layer).in_use(x, direction, beginnings.sizes, beginnings.before)
            x = x + y if depth and self.config.residual else y
            states.append(x)
        return [states[k].index_select(0, beginnings.at) for k in layers]

    def _wanted(self, layers: Layers) -> list[int]:
        K = len(self.layers) + 1
        return list(range(K)) if layers is None else [k % K for k in layers]

    def _outputs(self, x: Tensor, packing: Packing) -> list[Tensor]:
        """Of each LSTM layer, packed. x: (directions, N, P)."""
        outputs = []
        for depth, layer in enumerate(self.layers):
            # As the original: a layer's input is dropped before it meets both the cell and the residual.
            x = self.dropout(x)
            y = layer(x, packing.sizes)
            x = x + y if depth and self.config.residual else y
            outputs.append(x)
        return outputs

    def stages(self) -> list[list[nn.Parameter]]:
        """Every parameter once, bottom to top: the character network, then each LSTM layer."""
        return [list(stage.parameters()) for stage in (self.characters, *self.layers)]

    def activation_floats(self, B: int, T: int) -> int:
        """About how many numbers a training step on a (B, T) batch holds at its peak; half its words are distinct."""
        config, tokens = self.config, B * T
        filters = sum(count for _, count in config.filters)
        words = tokens // 2 * (6 + 4 * config.highway) * filters
        lstm = config.layers * self.directions * tokens * (11 * config.cell + 6 * config.projection)
        return words + lstm


def read_from_each_side(wanted: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """How many tokens each direction must read of each sequence: up to the last that is wanted, from its side. (B,).

    One at least, where there is one: what is not wanted is given some state, too.
    """
    places = torch.arange(wanted.shape[1], device=wanted.device)
    ahead = ((places + 1) * wanted).amax(dim=1)
    back = ((lengths[:, None] - places) * wanted).amax(dim=1)
    least = lengths.clamp(max=1)
    return torch.maximum(ahead, least), torch.maximum(back, least)
