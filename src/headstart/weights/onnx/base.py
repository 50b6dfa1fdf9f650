"""What an encoder needs to become ONNX: a graph of its layers, and code that shows how to run it.

Letters: B batch, T tokens, D width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from torch import nn

from headstart.encoders.base import Encoder
from headstart.errors import ConfigError
from headstart.weights.onnx.examples import Example
from headstart.weights.onnx.graph import BATCH, Graph

EncoderT = TypeVar("EncoderT", bound=Encoder)
TOKENS = (BATCH, "length")


class OnnxEncoder(ABC, Generic[EncoderT]):
    """An encoder that is being added to a graph."""

    def __init__(self, encoder: EncoderT, graph: Graph) -> None:
        self.encoder = encoder
        self.graph = graph

    @property
    @abstractmethod
    def example(self) -> Example:
        """Code that makes the inputs for one text."""

    @abstractmethod
    def add_layers(self) -> list[str]:
        """Add the encoder's inputs and its computation; returns R_0 .. R_L, each (B, T, D)."""

    def add_outputs(self, heads: Mapping[str, nn.Module], top: str) -> None:
        """Add what else can be computed from the top layer, (B, T, D): by default nothing."""

    def add_pooled(self, top: str) -> str:
        """Add the encoder's own vector of each sequence. top: (B, T, D) -> (B, D)."""
        raise ConfigError(f"{self.encoder.title} has no pooled vector of a sequence.")
