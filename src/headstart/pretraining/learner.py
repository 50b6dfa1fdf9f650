"""The interface between the training loop and a model: one step at a time, with a state that can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step. units: words, tokens or pairs processed; parts: each objective's loss, if several."""

    loss: float
    units: int
    parts: dict[str, float] = field(default_factory=dict)


class Learner(Protocol):
    """One model in training. step(n, rate) is a pure function of (state, n, rate), which makes resuming exact."""

    device: torch.device
    unit: str
    """What StepResult.units counts: "words", "tokens" or "pairs"."""

    keeps_best: bool
    """Whether the weights kept are those of the best held-out perplexity, not the last."""

    def parameter_count(self) -> int: ...

    def memory_bytes(self) -> int:
        """About what training takes, in memory."""
        ...

    def state_bytes(self) -> int:
        """What `state` takes on disk once the optimiser has its moments."""
        ...

    def steps_per_epoch(self) -> int: ...

    def step(self, number: int, rate: float) -> StepResult:
        """Take step `number`, counted from 0 over all epochs; rate in [0, 1] multiplies the peak learning rate."""
        ...

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        """Held-out figures, "perplexity" among them; {} when nothing is held out."""
        ...

    def state(self) -> Mapping[str, Tensor]:
        """Everything that changes from step to step, as live tensors: the next step may write into them."""
        ...

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Copy a saved state into place; CheckpointError if its names or shapes differ."""
        ...

    def weights(self) -> Mapping[str, Tensor]:
        """The weights that the finished run holds."""
        ...

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights into place, to be evaluated; the rest of the state stays."""
        ...
