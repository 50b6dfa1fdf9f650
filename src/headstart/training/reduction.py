"""Gradients summed over the processes of a run, in buckets that travel while the backward pass still goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from headstart.training.ranks import Ranks

BUCKET_NUMBERS = 6_500_000
"""Numbers that travel at a time, 26 MB of float32: small gradients would each wait for an answer of their own."""


class SummedGradient:
    """Replaces the gradient of every parameter by its sum over all processes.

    All processes send the same buckets in the same order, that in which a backward pass fills them: the last
    parameters first.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], ranks: Ranks) -> None:
        self.ranks = ranks
        self.buckets = buckets_of(parameters[::-1])
        self.arrays: list[Tensor] = []
        """One for each bucket, allocated at the first step and reused."""
        self.places: dict[int, Tensor] = {}
        """By parameter, its view of its bucket's array."""
        self.lock = threading.Lock()
        self.packed: set[int] = set()
        """Parameters whose gradient is in its bucket."""
        self.waiting: list[Callable[[], None]] = []
        """For the buckets that are on their way."""

    def receive(self, parameter: nn.Parameter, shares: Sequence[Tensor]) -> None:
        """Take a parameter's last gradients of this step, in parts, and send its bucket if it was the last of it.

        May be called by several threads; not in a process alone.
        """
        self._allocate()
        view = self.places[id(parameter)]
        parts = [*shares] if parameter.grad is None else [parameter.grad, *shares]
        if parts[0].is_sparse:
            view.zero_()
        else:
            view.copy_(parts.pop(0))
        for part in parts:
            view += part
        with self.lock:
            self.packed.add(id(parameter))
            self._send_full_buckets()

    def _send_full_buckets(self) -> None:
        while len(self.waiting) < len(self.buckets):
            number = len(self.waiting)
            if not all(id(p) in self.packed for p in self.buckets[number]):
                return
            self.waiting.append(self.ranks.start_sum(self.arrays[number]))

    def sum_up(self, numbers: Sequence[float]) -> list[float]:
        """Sum the gradients that `receive` was not given, too, and these numbers with them.

        A parameter that no process has a gradient for is left without one, as in one process: the optimiser passes
        over it. Where only some have one, it is zero in the others.
        """
        if self.ranks.launch.world == 1:
            return list(numbers)
        self._allocate()
        every = [p for bucket in self.buckets for p in bucket]
        told = torch.tensor(
            [*numbers, *(float(id(p) in self.packed or p.grad is not None) for p in every)], dtype=torch.float64
        )
        for parameter in every:
            if id(parameter) not in self.packed:
                view = self.places[id(parameter)]
                view.zero_() if parameter.grad is None else view.copy_(parameter.grad)
                self.packed.add(id(parameter))
        self._send_full_buckets()
        for wait in [*self.waiting, self.ranks.start_sum(told)]:
            wait()
        self.waiting, self.packed = [], set()
        answers = told.tolist()
        for parameter, has_gradient in zip(every, answers[len(numbers) :], strict=True):
            parameter.grad = self.places[id(parameter)] if has_gradient else None
        return answers[: len(numbers)]

    def _allocate(self) -> None:
        with self.lock:
            if self.arrays:
                return
            self.arrays = [array_for(bucket) for bucket in self.buckets]
            for bucket, array in zip(self.buckets, self.arrays, strict=True):
                self.places |= {id(p): view for p, view in zip(bucket, views(bucket, array), strict=True)}


def buckets_of(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """In their order, cut where a bucket is full."""
    buckets: list[list[nn.Parameter]] = []
    room = 0
    for parameter in parameters:
        if not buckets or parameter.numel() > room:
            buckets.append([])
            room = BUCKET_NUMBERS
        buckets[-1].append(parameter)
        room -= parameter.numel()
    return buckets


def array_for(bucket: Sequence[nn.Parameter]) -> Tensor:
    return bucket[0].new_empty(sum(parameter.numel() for parameter in bucket))


def views(bucket: Sequence[nn.Parameter], array: Tensor) -> list[Tensor]:
    parts: tuple[Tensor, ...] = array.split([parameter.numel() for parameter in bucket])  # type: ignore[no-untyped-call]
    return [part.view_as(parameter) for part, parameter in zip(parts, bucket, strict=True)]
