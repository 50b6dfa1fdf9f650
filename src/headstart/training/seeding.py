"""Randomness that follows from a seed alone, and leaves the caller's own generators as they were.

Dropout draws from a generator that its thread holds (`drawing_from` of encoders.kernels.dropout), so that several
threads can train at once. What can only draw from torch's global generator, the initialisers of parameters
above all, has it to itself for as long as it runs, and the generator's state is put back afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from headstart.batches.order import seed_of
from headstart.encoders.kernels.dropout import drawing_from, seeding_torch

BuiltT = TypeVar("BuiltT")
_cuda = threading.RLock()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """What this thread drops inside the block follows from `seed`, whatever other threads draw meanwhile.

    A GPU has one generator for all threads, so training steps on it run one after the other.
    """
    if device.type != "cuda":
        with drawing_from(seed):
            yield
        return
    with _cuda, drawing_from(seed), torch.random.fork_rng([device]):
        torch.cuda.manual_seed(seed)
        yield


def freshly_initialised(seed: int, build: Callable[[], BuiltT]) -> BuiltT:
    """Build something whose random initial values follow from the seed alone."""
    with seeding_torch(seed_of(seed, "initial weights")):
        return build()
