"""Gradients summed over the processes of a run, in buckets of the same parameters at each step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headstart.training.ranks import Ranks

BUCKET_NUMBERS = 6_500_000
"""Numbers that travel at a time, 26 MB of float32: small gradients would each wait for an answer of their own."""


class SummedGradient:
    """Replaces the gradient of every parameter by its sum over all processes."""

    def __init__(self, parameters: Sequence[nn.Parameter], ranks: Ranks) -> None:
        self.ranks = ranks
        self.buckets = buckets_of(parameters)
        self.arrays: list[Tensor] = []
        """One for each bucket, allocated at the first step and reused."""

    def sum_up(self, numbers: Sequence[float]) -> list[float]:
        """Sum the gradients, and these numbers with them.

        A parameter that no process has a gradient for is left without one, as in one process: the optimiser passes
        over it. Where only some have one, it is zero in the others.
        """
        if self.ranks.launch.world == 1:
            return list(numbers)
        if not self.arrays:
            self.arrays = [array_for(bucket) for bucket in self.buckets]
        has_gradient = [float(p.grad is not None) for bucket in self.buckets for p in bucket]
        told = torch.tensor([*numbers, *has_gradient], dtype=torch.float64)
        for bucket, array in zip(self.buckets, self.arrays, strict=True):
            pack(bucket, array)
        self.ranks.sum_([*self.arrays, told])
        answers = told.tolist()
        counts = iter(answers[len(numbers) :])
        for bucket, array in zip(self.buckets, self.arrays, strict=True):
            for parameter, view in zip(bucket, views(bucket, array), strict=True):
                parameter.grad = view if next(counts) else None
        return answers[: len(numbers)]


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


def pack(bucket: Sequence[nn.Parameter], array: Tensor) -> None:
    for parameter, view in zip(bucket, views(bucket, array), strict=True):
        if parameter.grad is None:
            view.zero_()
        else:
            view.copy_(parameter.grad)
