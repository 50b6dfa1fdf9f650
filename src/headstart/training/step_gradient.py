"""The gradient of one step, whose rows are divided among threads and processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import nn

from headstart.training.data_parallel import DataParallelGradient, Loss
from headstart.training.ranks import Ranks
from headstart.training.reduction import SummedGradient


class StepGradient(Protocol):
    """Collects the gradient of a step in every parameter's grad, over its batches and over all processes."""

    @property
    def parts(self) -> int:
        """How many parts this process divides its rows into."""
        ...

    def of(self, losses: Sequence[Loss], *, is_last: bool) -> float:
        """Add the gradients of these parts of a batch; its loss. is_last: no batch of this step follows."""
        ...

    def sum_up(self, numbers: Sequence[float]) -> list[float]:
        """Complete the step: gradients and these numbers are then the sums over all processes."""
        ...


class ReplicatedGradient:
    """Each process holds the whole model, and each of its cores computes the gradient of a part."""

    def __init__(self, parameters: Sequence[nn.Parameter], ranks: Ranks, device: torch.device) -> None:
        self.device = device
        self.cores = DataParallelGradient(parameters)
        self.processes = SummedGradient(parameters, ranks)
        self.has_others = ranks.launch.world > 1

    @property
    def parts(self) -> int:
        return 1 if self.device.type != "cpu" else torch.get_num_threads()

    def of(self, losses: Sequence[Loss], *, is_last: bool) -> float:
        return self.cores.of(losses, self.processes.receive if self.has_others and is_last else None)

    def sum_up(self, numbers: Sequence[float]) -> list[float]:
        return self.processes.sum_up(numbers)
