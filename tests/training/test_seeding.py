"""Randomness from a seed alone: in any number of threads, and without a trace in the caller's own generators."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor, nn

from headstart.encoders.kernels.dropout import Dropout
from headstart.heads.classify import ClassifyHead, ClassifyHeadConfig
from headstart.training.seeding import freshly_initialised, seeded

CPU = torch.device("cpu")
THREADS = 4


def dropped(seed: int) -> Tensor:
    drop = Dropout(0.5).train()
    with seeded(seed, CPU):
        return torch.stack([drop(torch.ones(64)) for _ in range(30)])


def initialised(seed: int) -> Tensor:
    return torch.cat([freshly_initialised(seed + i, lambda: nn.Linear(8, 8)).weight.detach() for i in range(30)])


def read_by_two_layers(seed: int) -> Tensor:
    """nn.LSTM drops between its layers by torch's own generator."""
    config = ClassifyHeadConfig(cell="lstm", layers=2, width=8, dropout=0.5)
    network = freshly_initialised(seed, lambda: ClassifyHead(4, 0, 2, config)).train()
    x, mask = torch.ones(3, 5, 4), torch.ones(3, 5, dtype=torch.bool)
    with seeded(seed, CPU):
        return torch.stack([network(x, mask).detach() for _ in range(30)])


WORKS = [dropped, initialised, read_by_two_layers]


@pytest.mark.parametrize("work", WORKS)
def test_the_seed_decides(work: Callable[[int], Tensor]) -> None:
    first = work(1)
    torch.rand(3)  # what the caller draws must not matter
    assert torch.equal(first, work(1))
    assert not torch.equal(first, work(2))


@pytest.mark.parametrize("work", WORKS)
def test_threads_at_once_give_what_each_gives_alone(work: Callable[[int], Tensor]) -> None:
    alone = [work(seed) for seed in range(THREADS)]
    ready = Barrier(THREADS)

    def together(seed: int) -> Tensor:
        ready.wait()
        return work(seed)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(together, range(THREADS)))
    assert all(torch.equal(mine, expected) for mine, expected in zip(found, alone, strict=True))


@pytest.mark.parametrize("work", WORKS)
def test_the_callers_generator_is_left_alone(work: Callable[[int], Tensor]) -> None:
    before = torch.get_rng_state()
    work(0)
    assert torch.equal(torch.get_rng_state(), before)
