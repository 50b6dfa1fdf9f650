"""The task network: words' vectors -> a recurrent network -> one vector per text -> logits.

Letters: B batch, W words, D width, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from headstart.config import Section
from headstart.encoders.kernels.dropout import Dropout
from headstart.errors import DataError

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class NetworkConfig(Section):
    """The network between the words' vectors and the classes."""

    cell: Literal["lstm", "gru", "rnn", "none"] = "lstm"
    """The recurrent cell that reads the words, or none to pool the words' vectors as they are."""

    width: int = Field(default=64, ge=1)
    """Recurrent cells per direction and layer."""

    layers: int = Field(default=1, ge=1)
    """Recurrent layers."""

    directions: Literal["both", "forward"] = "both"
    """Read the words both ways, or forward only."""

    pool: Literal["last", "mean", "max", "attention", "first"] = "max"
    """How words become one vector: where reading ends, their mean, greatest values, weighted sum, or the first word."""

    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share dropped in training of what each recurrent layer reads, and of what the softmax reads."""

    @model_validator(mode="after")
    def first_word_has_read_the_text(self) -> NetworkConfig:
        if self.cell != "none" and self.directions == "forward" and self.pool == "first":
            raise ValueError(
                "network.pool 'first' would see one word only, because network.directions 'forward' has read no more "
                "by then; use 'both' directions or another pool"
            )
        return self

    @property
    def reads_pooled(self) -> bool:
        """Whether an encoder's own vector of the sequence, where it has one, takes the place of the first word's."""
        return self.cell == "none" and self.pool == "first"


class TaskNetwork(nn.Module):
    """Recurrent layers over the words, then one vector per text, then a linear layer to the classes.

    A text's logits depend on that text alone, not on padding or neighbours. A text without words is a vector of zeros.
    """

    def __init__(self, inputs: int, joined: int, classes: int, config: NetworkConfig) -> None:
        """inputs: width of what the network reads; joined: width of what is put beside what it gives, or 0."""
        super().__init__()
        self.config = config
        self.dropout = Dropout(config.dropout)
        self.recurrent = recurrent_layers(inputs, config)
        directions = 2 if config.directions == "both" else 1
        states = inputs if self.recurrent is None else directions * config.width
        backward = 0 if self.recurrent is None else (directions - 1) * config.width
        self.pool = POOLS[config.pool](joined + states, backward)
        self.output = nn.Linear(joined + states, classes)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """x, joined: (B, W, D); mask: (B, W), True at real words -> logits (B, C).

        pooled: an encoder's own way from (B, W, D) to (B, D), used in the place of the pool.
        """
        states = self.read(x, mask)
        words = states if joined is None else torch.cat([joined, states], dim=2)
        words = words.masked_fill(~mask[..., None], 0.0)
        text = self.pool(words, mask) if pooled is None else pooled(words)
        logits: Tensor = self.output(self.dropout(text))
        return logits

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each word's states, forward beside backward."""
        if self.recurrent is None:
            return x
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise DataError("A text has real words after padding; pad texts at their end only.")
        # Packing wants one word at least; what a text without words reads is masked afterwards.
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(x), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True, total_length=x.shape[1])
        return states

    def idle(self) -> list[nn.Parameter]:
        """Parameters that change no logit: at the first word, the forward direction has no state to multiply yet."""
        if self.recurrent is None or self.config.pool != "first":
            return []
        top = f"weight_hh_l{self.config.layers - 1}"
        return [parameter for name, parameter in self.recurrent.named_parameters() if name == top]


def recurrent_layers(inputs: int, config: NetworkConfig) -> nn.RNNBase | None:
    if config.cell == "none":
        return None
    return CELLS[config.cell](
        inputs,
        config.width,
        num_layers=config.layers,
        bidirectional=config.directions == "both",
        batch_first=True,
        dropout=config.dropout if config.layers > 1 else 0.0,  # torch drops between layers only, and warns of one
    )


class Pool(nn.Module):
    """x: (B, W, D), zero at padding; mask: (B, W) -> (B, D), zeros for a text without words.

    The last `backward` columns of x come from reading the text from its end.
    """

    def __init__(self, width: int, backward: int) -> None:
        super().__init__()
        self.split = width - backward


class LastState(Pool):
    """Where each direction has read everything: the last word's columns, the first word's for the backward ones."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        forward = x[torch.arange(len(x), device=x.device), last, : self.split]
        return torch.cat([forward, x[:, 0, self.split :]], dim=1)


class MeanOfWords(Pool):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


class GreatestOfWords(Pool):
    """The greatest value of each column."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        greatest = x.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
        return greatest.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)


class AttentionOverWords(Pool):
    """sum_w a_w x_w, with a = softmax(x . query) over the real words."""

    def __init__(self, width: int, backward: int) -> None:
        super().__init__(width, backward)
        self.query = nn.Parameter(torch.zeros(width))  # zeros, so that it starts as the mean

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        # The least finite number rather than -inf, whose softmax is not a number for a text without words.
        scores = (x @ self.query).masked_fill(~mask, torch.finfo(x.dtype).min)
        return torch.einsum("bw,bwd->bd", scores.softmax(dim=1), x)


class FirstPosition(Pool):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x[:, 0]


POOLS: dict[str, type[Pool]] = {
    "last": LastState,
    "mean": MeanOfWords,
    "max": GreatestOfWords,
    "attention": AttentionOverWords,
    "first": FirstPosition,
}
