"""One vector per word from an encoder's layers: R_0 .. R_L -> h.

Letters: K layers, B batch, W words, D width.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from headstart.config import Section
from headstart.encoders.representations import Representations
from headstart.errors import ConfigError

CONCATENATED = 4


class MixConfig(Section):
    """How an encoder's layers become one vector per word."""

    kind: Literal["scalar", "last", "mean", "concat", "attention"] = "scalar"
    """Learned layer weights, the top layer, all layers alike, the last four side by side, or weights for each word."""

    pull: float = Field(default=0.0, ge=0)
    """How strongly learned layer weights are pulled to their mean; only for kind scalar."""

    norm: bool = False
    """Bring every layer's vectors to mean 0 and variance 1 before they are mixed."""

    standardise: bool = True
    """Frozen: bring every column of every layer to mean 0 and deviation 1 over the words of the training examples."""

    place: Literal["input", "output", "both"] = "input"
    """Where the task network meets the mix: as what it reads, beside what it gives, or both, each with its weights."""


class Mix(nn.Module, ABC):
    """What every mix promises: layers in, one vector per word out, whatever stands in padding."""

    def __init__(self, config: MixConfig, layers: int, width: int) -> None:
        super().__init__()
        self.config = config
        self.n_layers = layers
        self.out_width = width

    def forward(self, R: Representations) -> Tensor:
        """R.layers: (K, B, W, D) -> (B, W, out_width)."""
        layers = R.layers
        if len(layers) != self.n_layers:
            raise ConfigError(
                f"This mix was built for {self.n_layers} layers, but the encoder gave {len(layers)}. "
                "Use it with the encoder it was trained on."
            )
        if self.config.norm:
            # The original ELMo takes mean and variance over all words of the batch. A sentence's vectors would then
            # depend on its neighbours, so here every word's vector is normalised by itself.
            layers = F.layer_norm(layers, layers.shape[-1:])
        return self.combine(layers)

    @abstractmethod
    def combine(self, layers: Tensor) -> Tensor:
        """(K, B, W, D) -> (B, W, out_width)."""

    @property
    def gives_top_layer(self) -> bool:
        """Whether what comes out is the top layer, unchanged."""
        return False

    @property
    def is_linear(self) -> bool:
        """Whether the mix of a mean of words is the mean of their mixes."""
        return not self.config.norm

    def penalty(self) -> Tensor:
        """What the mix adds to the loss."""
        return torch.zeros(())

    def learned(self) -> dict[str, Any] | None:
        """The layer weights that hold for every word, where there are any to learn."""
        return None

    def unused_parameters(self) -> list[nn.Parameter]:
        """Parameters that change nothing: with one layer there is nothing to weight."""
        return []


class Scalar(Mix):
    """ELMo's mixture (Peters et al. 2018, eq. 1): gamma * sum_k s_k R_k, with s = softmax(w)."""

    def __init__(self, config: MixConfig, layers: int, width: int) -> None:
        super().__init__(config, layers, width)
        self.w = nn.Parameter(torch.zeros(layers))  # zeros, so that every layer starts equal
        self.gamma = nn.Parameter(torch.ones(()))

    @property
    def s(self) -> Tensor:
        return self.w.softmax(dim=0)

    def combine(self, layers: Tensor) -> Tensor:
        return torch.einsum("k,kbwd->bwd", self.gamma * self.s, layers)

    def penalty(self) -> Tensor:
        """pull * sum_k (s_k - 1/K)^2: on the weights themselves, because w may move along (1, .., 1) for nothing."""
        return self.config.pull * (self.s - 1 / self.n_layers).square().sum()

    def learned(self) -> dict[str, Any]:
        return {"weights": self.s.tolist(), "gamma": self.gamma.item()}

    def unused_parameters(self) -> list[nn.Parameter]:
        return [self.w] if self.n_layers == 1 else []


class Last(Mix):
    """R_L alone."""

    def combine(self, layers: Tensor) -> Tensor:
        return layers[-1]

    @property
    def gives_top_layer(self) -> bool:
        return not self.config.norm


class Mean(Mix):
    """All layers alike."""

    def combine(self, layers: Tensor) -> Tensor:
        return layers.mean(dim=0)


class Concat(Mix):
    """The last four layers side by side, lowest first, or as many as there are."""

    def __init__(self, config: MixConfig, layers: int, width: int) -> None:
        super().__init__(config, layers, width)
        self.out_width = min(CONCATENATED, layers) * width

    def combine(self, layers: Tensor) -> Tensor:
        return layers[-CONCATENATED:].permute(1, 2, 0, 3).flatten(2)


class Attention(Mix):
    """Weights for each word: sum_k a_k R_k, with a = softmax_k(v . tanh(W R_k))."""

    def __init__(self, config: MixConfig, layers: int, width: int) -> None:
        super().__init__(config, layers, width)
        self.W = nn.Parameter(torch.randn(width, width) / math.sqrt(width))
        self.v = nn.Parameter(torch.zeros(width))  # zeros, so that every layer starts equal

    def combine(self, layers: Tensor) -> Tensor:
        weights = (torch.tanh(layers @ self.W) @ self.v).softmax(dim=0)  # (K, B, W)
        return torch.einsum("kbw,kbwd->bwd", weights, layers)

    @property
    def is_linear(self) -> bool:
        """Its weights depend on the word."""
        return False

    def unused_parameters(self) -> list[nn.Parameter]:
        return [self.W, self.v] if self.n_layers == 1 else []


MIXES: dict[str, type[Mix]] = {"scalar": Scalar, "last": Last, "mean": Mean, "concat": Concat, "attention": Attention}


def build_mix(config: MixConfig, layers: int, width: int) -> Mix:
    return MIXES[config.kind](config, layers, width)
