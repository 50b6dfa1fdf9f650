"""What an encoder is: everything that the rest of the project asks of one, whichever it is.

Letters: B batch, T tokens, C characters per word, K layers, D width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from headstart.batches.rows import Joined, TextRow
from headstart.config import Section, Table
from headstart.encoders.representations import Layers, Representations, Tokens
from headstart.encoders.stateful import LstmState
from headstart.errors import CheckpointError, ConfigError
from headstart.text.tokenizer import Tokenizer


class Encoder(nn.Module, ABC):
    """ids -> R_0 .. R_L, the vectors of every token at every layer. A token's vectors depend on its own text alone."""

    kind: ClassVar[str]
    """Its name on the command line and in config.toml."""
    title: ClassVar[str]
    """Its name in tables and messages."""
    description: ClassVar[str]
    """One sentence for the card of a run."""
    units: ClassVar[str] = "words"
    """What it reads a text as."""
    perplexity_note: ClassVar[str]
    """What its held-out perplexity is measured over."""
    Config: ClassVar[type[Section]]
    """Its shape: the section [encoder] of a run."""
    sizes: ClassVar[Mapping[str, Table]] = {}
    """Settings of `Config` by the name of a published size."""
    marks: ClassVar[int] = 0
    """Special tokens added around a text."""
    data_parallel: ClassVar[bool] = False
    """Trains faster on several cores when each has its own examples."""
    pools: ClassVar[bool] = False
    """Has a pooled vector of a sequence of its own."""
    joins: ClassVar[bool] = False
    """Reads two texts in one sequence, and knows which is which."""
    contextual: ClassVar[bool] = True
    """A word's vectors depend on its context."""
    run_prefix: ClassVar[str] = "encoder."
    """What the names of its tensors begin with in a run's weights."""

    config: Section

    @classmethod
    @abstractmethod
    def build(cls, settings: Table, vocabulary_size: int) -> Self:
        """A randomly initialised encoder. settings: those of `Config`; an unknown or wrong one is a ConfigError."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """K and D of its representations."""

    @abstractmethod
    def hidden_states(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> list[Tensor]:
        """R_0 .. R_L, each (B, T, D) and zero at padding. layers: the numbers of those wanted, by default all.

        ids: (B, T) words or pieces, or (B, T, C) characters; mask: (B, T), True at real tokens, which come first in
        every row; segments: (B, T), 0 in the first text of a pair and 1 in the second.
        """

    @abstractmethod
    def layer_groups(self) -> list[list[nn.Parameter]]:
        """Every parameter once, in groups from bottom to top: the order in which layers are unfrozen, reversed."""

    @abstractmethod
    def activation_floats(self, B: int, T: int) -> int:
        """About how many numbers a training step on a (B, T) batch holds at its peak."""

    @abstractmethod
    def row(self, tokenizer: Tokenizer, text: str | Sequence[str], longest: int | None) -> TextRow:
        """One text, or its words, with the encoder's marks. longest: tokens kept besides the marks."""

    def forward(
        self, ids: Tensor, mask: Tensor, segments: Tensor | None = None, layers: Layers = None
    ) -> Representations:
        """The training path: `hidden_states` stacked, (K, B, T, D)."""
        return Representations(torch.stack(self.hidden_states(ids, mask, segments, layers)), mask)

    def infer(
        self,
        ids: Tensor,
        mask: Tensor,
        segments: Tensor | None = None,
        layers: Layers = None,
        wanted: Tensor | None = None,
    ) -> Tokens:
        """The inference path: the same vectors, of the real tokens only. Call it without gradients.

        wanted: (B, T), True at the tokens whose vectors are read. An encoder may skip work that only the others need,
        and then gives them arbitrary values in the top layer.
        """
        lengths = mask.sum(dim=1)
        states = self.hidden_states(ids, mask, segments, layers)
        return Tokens([state[mask] for state in states], lengths.cumsum(0) - lengths)

    def clear_cache(self) -> None:
        """Forget what inference has kept. A cached vector may differ in its last bit from one that is computed anew:
        after clearing, the same calls give the same bits."""

    def drop_given_vectors(self) -> None:
        """Compute every vector from the weights from now on, also of words whose vectors were given ready.

        A saved model has the weights alone, so that only then it answers as it did in memory.
        """

    def infer_from(
        self, state: LstmState | None, ids: Tensor, mask: Tensor, segments: Tensor | None = None
    ) -> tuple[list[Tensor], LstmState]:
        """`hidden_states` with the recurrent state of the batch before, as the original ELMo; and the state after."""
        raise ConfigError(f"carry_state is for ELMo, whose LSTM has a state to carry; this is {self.title}.")

    def attention(self, ids: Tensor, mask: Tensor, segments: Tensor | None = None) -> tuple[list[Tensor], Tensor]:
        """All of `hidden_states`, and what each head's attention gives every token, (layers, B, heads, T, T).

        Entry [l, b, h, i, j] is how much of token i's new vector in layer l + 1 comes from token j: rows sum to 1, and
        are zero at padding. For looking at, not for speed.
        """
        raise ConfigError(f"Attention heads are BERT's, and this is {self.title}. bert-mini and minilm have them.")

    @property
    def longest(self) -> int | None:
        """Tokens in the longest sequence, marks included; None: any number."""
        return None

    @property
    def room(self) -> int | None:
        """Tokens in the longest text, marks left out; None: any number."""
        return None if self.longest is None else self.longest - self.marks

    @property
    def batch_tokens(self) -> int | None:
        """Tokens that are encoded fastest together; None: no preference."""
        return None

    def pooled(self, top: Tensor) -> Tensor:
        """The encoder's own vector of each sequence. top: (B, T, D) of the top layer -> (B, D)."""
        raise ConfigError(f"{self.title} has no pooled vector of a sequence; pool the vectors of its words instead.")

    def pooler_parameters(self) -> list[nn.Parameter]:
        """The parameters that only `pooled` uses."""
        return []

    def word_vectors(self) -> Tensor:
        """(V, D): the vector of each word of the vocabulary, for encoders that are not contextual."""
        raise ConfigError(f"{self.title} has no vector for a word alone; give a sentence with the word in it.")

    def quantised(self) -> Encoder:
        """A copy for inference that multiplies in int8."""
        raise ConfigError(
            "int8 is for BERT: word vectors multiply nothing, and most of ELMo's time is its LSTM, which would stay "
            "float32. Use the precision float32."
        )

    def pair_row(
        self, tokenizer: Tokenizer, pair: Joined, longest: int | None, *, every_piece: bool = False
    ) -> TextRow:
        """Two texts in one row, for encoders that join. every_piece: each piece counts as a word."""
        raise ConfigError(f"{self.title} reads one text at a time and cannot join two in one row; BERT can.")

    @classmethod
    def settings_in_run(cls, table: Table, where: Path) -> Table:
        """The settings of `Config`, from the config.toml of a run. where: that file, for messages."""
        settings = table.get("encoder")
        if not isinstance(settings, dict):
            raise CheckpointError(f"{where}: has no section [encoder], which says the shape of this {cls.title}.")
        return settings

    @classmethod
    def weights_in_run(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The encoder's tensors among all that a run saved, by the names of its `state_dict`."""
        own = (name for name in weights if name.startswith(cls.run_prefix))
        return {name.removeprefix(cls.run_prefix): weights[name] for name in own}


PRECISIONS: dict[str, Callable[[Encoder], Encoder]] = {
    "float32": lambda encoder: encoder,
    "int8": lambda encoder: encoder.quantised(),
}
"""The precisions of inference, and what converts an encoder to each."""
