"""What ELMo's lowest layer is: a vector for each word, whatever its context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from torch import Tensor, nn


class TokenLayer(nn.Module, ABC):
    """ids of words -> their vectors. Letters: N tokens, U distinct words, C ids per word, P width of a vector."""

    @abstractmethod
    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) or (B, T, C) -> (B, T, P)."""

    @abstractmethod
    def distinct(self, ids: Tensor, keep: bool = False) -> tuple[Tensor, Tensor]:
        """ids: (N,) or (N, C) -> vectors of the distinct words, (U, P), and the number of each word among them, (N,).

        keep: at inference, vectors that take work to compute may be kept for the next call.
        """

    @abstractmethod
    def ids_of(self, words: Sequence[str], numbers: NDArray[Any]) -> NDArray[Any]:
        """What the layer reads of each word, (T,) or (T, C). numbers: (T,), the words' numbers in the vocabulary."""

    @abstractmethod
    def activation_floats(self, tokens: int) -> int:
        """About how many numbers a training step holds for so many tokens."""

    def forget(self) -> None:
        """Drop what inference has kept."""
