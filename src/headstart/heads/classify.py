"""The head of text classification: a recurrent network over the words, pooling, a linear layer to the classes.

Letters: B batch, W words, D width, C classes.
"""

from __future__ import annotations

from pydantic import field_validator, model_validator
from torch import Tensor, nn

from headstart.heads.pool import build_pool, pool_names
from headstart.heads.recurrent import Head, Pooled, RecurrentConfig


class ClassifyHeadConfig(RecurrentConfig):
    """The network between the words' vectors and the classes."""

    pool: str = "max"
    """How words become one vector: last (final states), mean, max, attention, first, or several: last+max+mean."""

    @field_validator("pool")
    @classmethod
    def pools_exist(cls, pool: str) -> str:
        pool_names(pool)
        return pool

    @model_validator(mode="after")
    def first_word_has_read_the_text(self) -> ClassifyHeadConfig:
        if self.cell != "none" and self.directions == "forward" and self.pool == "first":
            raise ValueError(
                "network.pool 'first' would see one word only, because network.directions 'forward' has read no more "
                "by then; use 'both' directions or another pool"
            )
        return self

    @property
    def reads_first_position(self) -> bool:
        return self.pool == "first"

    @property
    def uses_encoder_pooling(self) -> bool:
        """Whether an encoder's own vector of the sequence, where there is one, takes the place of the first vector."""
        return self.cell == "none" and self.pool == "first"


class ClassifyHead(Head):
    """One vector per text, then its logits. A text without words is a vector of zeros."""

    def __init__(self, inputs: int, joined: int, classes: int, config: ClassifyHeadConfig) -> None:
        super().__init__(inputs, joined, config)
        self.config = config
        self.pool = build_pool(config.pool, self.out_width, self.backward_width)
        self.output = nn.Linear(self.pool.out_width, classes)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """-> logits (B, C)."""
        words = self.words(x, mask, joined)
        text = self.pool(words, mask) if pooled is None else pooled(words)
        logits: Tensor = self.output(self.dropout(text))
        return logits

    @property
    def uses_encoder_pooling(self) -> bool:
        return self.config.uses_encoder_pooling

    @property
    def is_plain(self) -> bool:
        return self.uses_encoder_pooling

    @property
    def reads_mean_of_words(self) -> bool:
        return self.recurrent is None and self.config.pool == "mean"

    def unused_parameters(self) -> list[nn.Parameter]:
        """At the first word the forward direction has no state to multiply yet."""
        if self.recurrent is None or self.config.pool != "first":
            return []
        top = f"weight_hh_l{self.config.layers - 1}"
        return [parameter for name, parameter in self.recurrent.named_parameters() if name == top]
