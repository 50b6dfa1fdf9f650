"""Randomness from a seed alone, leaving torch's global generator as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from headstart.batches.order import seed_of

BuiltT = TypeVar("BuiltT")


def freshly_initialised(seed: int, build: Callable[[], BuiltT]) -> BuiltT:
    """Build something whose random start follows from the seed alone, leaving torch's generator as it was."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed_of(seed, "initial weights"))
        return build()
