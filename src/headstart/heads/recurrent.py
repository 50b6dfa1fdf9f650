"""A recurrent network over the words of a text, the part that every task head shares.

Letters: B batch, W words, D width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from headstart.config import Depth, Section, Width
from headstart.encoders.kernels.dropout import Dropout, drawn_seed, seeding_torch
from headstart.errors import DataError

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
Pooled = Callable[[Tensor], Tensor]
"""An encoder's own vector of a sequence: (B, W, D) -> (B, D)."""


class RecurrentConfig(Section):
    """The recurrent network between the words' vectors and a task's scores."""

    cell: Literal["lstm", "gru", "rnn", "none"] = "lstm"
    """The recurrent cell that reads the words, or none to use the words' vectors as they are."""

    width: Width = 64
    """Recurrent cells per direction and layer."""

    layers: Depth = 1
    """Recurrent layers."""

    directions: Literal["both", "forward"] = "both"
    """Read the words both ways, or forward only."""

    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share dropped in training of what each recurrent layer reads, and of what the output layer reads."""

    @property
    def reads_first_position(self) -> bool:
        """Whether an encoder's first mark, such as [CLS], is read before the words as if it were one."""
        return False

    @property
    def reads_together(self) -> bool:
        """Whether the two texts of a pair stand in one sequence of the encoder."""
        return False

    @property
    def reads_every_piece(self) -> bool:
        """Whether every piece of a pair counts as a word."""
        return False


class Head(nn.Module, ABC):
    """Words' vectors -> scores. A row's scores depend on that row alone, not on padding or neighbours."""

    recurrent: nn.RNNBase | None

    def __init__(self, inputs: int, joined: int, config: RecurrentConfig) -> None:
        """inputs: width of what the recurrent network reads; joined: width of what is put beside its output, or 0."""
        super().__init__()
        self.dropout = Dropout(config.dropout)
        self.recurrent = recurrent_layers(inputs, config)
        directions = 2 if config.directions == "both" else 1
        states = inputs if self.recurrent is None else directions * config.width
        self.out_width = joined + states
        self.backward_width = 0 if self.recurrent is None else (directions - 1) * config.width

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """x, joined: (B, W, D); mask: (B, W), True at real words. pooled: the encoder's own pooling, if it has one.

        parts: (B, W), 0 at words of a pair's first text and 1 at those of its second, where a row holds two texts.
        """

    def words(self, x: Tensor, mask: Tensor, joined: Tensor | None) -> Tensor:
        """What the output layer reads of each word, (B, W, out_width), zero at padding."""
        states = self.read(x, mask)
        words = states if joined is None else torch.cat([joined, states], dim=2)
        return words.masked_fill(~mask[..., None], 0.0)

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each word's recurrent states, forward beside backward."""
        if self.recurrent is None:
            return x
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise DataError("A text has real words after padding; pad texts at their end only.")
        # Packing needs at least one word per row; the states of a row without words are masked afterwards.
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(x), lengths, batch_first=True, enforce_sorted=False)
        # torch drops between recurrent layers by its global generator, which other threads may be drawing from.
        drops = self.training and self.recurrent.dropout > 0
        with seeding_torch(drawn_seed()) if drops else nullcontext():
            read = self.recurrent(packed)[0]
        states, _ = pad_packed_sequence(read, batch_first=True, total_length=x.shape[1])
        return states

    @property
    def uses_encoder_pooling(self) -> bool:
        """Whether it wants the encoder's own vector of the sequence, where there is one."""
        return False

    @property
    def is_plain(self) -> bool:
        """Whether it is one linear layer and nothing else, as the heads of other tools are."""
        return False

    @property
    def reads_mean_of_words(self) -> bool:
        """Whether its scores are the same when a text's words are replaced by one word, their mean."""
        return False

    def unused_parameters(self) -> list[nn.Parameter]:
        """Parameters that no score depends on."""
        return []


def recurrent_layers(inputs: int, config: RecurrentConfig) -> nn.RNNBase | None:
    if config.cell == "none":
        return None
    return CELLS[config.cell](
        inputs,
        config.width,
        num_layers=config.layers,
        bidirectional=config.directions == "both",
        batch_first=True,
        dropout=config.dropout if config.layers > 1 else 0.0,  # torch drops between layers only, and warns about one
    )
