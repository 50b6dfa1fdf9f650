"""What a neural pretraining objective is: a model that turns a batch into named, summed losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from headstart.heads.language_model import LossTerm


class Batch(Protocol):
    """What one step reads. A batch knows what each of its losses sums over before the model has run."""

    @property
    def mask(self) -> Tensor:
        """(B, T), True at real tokens."""
        ...

    def to(self, device: torch.device) -> Self: ...

    def counts(self) -> dict[str, int]:
        """By the name of each loss, the number of predictions that it sums over."""
        ...

    def share(self, rank: int, world: int) -> Self:
        """The rows of one of `world` processes; there are none for some where the batch has fewer rows."""
        ...

    def parts(self, n: int) -> list[Self]:
        """The batch divided for n cores, in at most n parts."""
        ...


BatchT = TypeVar("BatchT", bound=Batch)
BatchT_co = TypeVar("BatchT_co", bound=Batch, covariant=True)


class Batches(Protocol[BatchT_co]):
    """Batch i, for any i, going on through the epochs; len is the batches in one epoch."""

    def __len__(self) -> int: ...
    def __getitem__(self, number: int) -> BatchT_co: ...


class Objective(nn.Module, ABC, Generic[BatchT]):
    """An encoder with its pretraining heads."""

    @abstractmethod
    def forward(self, batch: BatchT, generator: torch.Generator | None = None) -> dict[str, LossTerm]:
        """The summed losses by name. `generator` draws what is sampled; None where nothing may be."""

    def skip(self, generator: torch.Generator) -> None:
        """Draw what `forward` would, for a process without a row of this batch."""

    def prepare_sharding(self) -> Sequence[nn.Module]:
        """Called before the parameters are divided among processes; the submodules that get a group of their own.

        A group's parameters may be read by nobody but the submodule's forward, which one thread calls.
        """
        return ()

    @abstractmethod
    def activation_floats(self, B: int, T: int) -> int:
        """About how many numbers a batch of this shape leaves for the backward pass."""
