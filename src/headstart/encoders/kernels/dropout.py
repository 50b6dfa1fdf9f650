"""Dropout with a fast mask. torch draws a CPU mask one element at a time, which is a fifth of a training step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

LEVELS = 1 << 16
VALUES_PER_DRAW = 4
"""A draw of 64 random bits decides about four elements, with 16 bits each."""


class Dropout(nn.Module):
    """nn.Dropout, with p rounded to 1/65536.

    torch's generator gives one seed per call, so that torch.manual_seed still determines everything, and numpy's SFC64
    makes the mask from that seed. Inside `drawing_from` its seed determines the mask instead.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.threshold = round(p * LEVELS)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.threshold == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        scale = LEVELS / (LEVELS - self.threshold)
        keep = draw_keep_mask(x.shape, self.threshold)
        dropped: Tensor = _MaskedScale.apply(x, keep, scale)  # type: ignore[no-untyped-call]
        return dropped

    def extra_repr(self) -> str:
        return f"p={self.p}"


class _ThisThread(threading.local):
    generator: torch.Generator | None = None


_this_thread = _ThisThread()


def drawn_seed() -> int:
    """A seed from this thread's generator, or from torch's global one."""
    return int(torch.randint(torch.iinfo(torch.int64).max, (), generator=_this_thread.generator))


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """This thread's dropout depends on `seed` alone, whatever other threads draw in the meantime."""
    before = _this_thread.generator
    _this_thread.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _this_thread.generator = before


_torch_generator = threading.RLock()


@contextmanager
def seeding_torch(seed: int) -> Iterator[None]:
    """torch's global generator seeded for this block and put back after it, for one thread at a time.

    For what takes no generator of its own: the initialisers of parameters, and nn.LSTM's dropout between its layers.
    """
    with _torch_generator, torch.random.fork_rng([]):
        # torch.manual_seed would seed every GPU too, and record the call for those that are not initialised yet, which
        # takes longer than a small training step.
        torch.default_generator.manual_seed(seed)
        yield


def draw_keep_mask(shape: torch.Size, threshold: int) -> Tensor:
    """Bool, False with probability threshold / 65536."""
    seed = drawn_seed()
    n = shape.numel()
    # Read as signed numbers, the 16 bits run from -LEVELS / 2 on: torch compares int16, but not uint16.
    bits = np.random.SFC64(seed).random_raw(-(-n // VALUES_PER_DRAW)).view(np.int16)[:n]
    return (torch.from_numpy(bits) >= threshold - LEVELS // 2).view(shape)


class _MaskedScale(torch.autograd.Function):
    """x * keep * scale. The backward pass needs the mask only, one byte per element."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (x * keep).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return (grad * keep).mul_(ctx.scale), None, None
