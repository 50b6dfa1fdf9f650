"""How two ways of doing the same work are timed: in turns, in one process, by their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

REPEATS = 5


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of the table. Rates are units per second; a ratio of 2 means twice as fast as the peer."""

    work: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    goal: float

    @property
    def ratio(self) -> float:
        return self.ours / self.peer


class OneBatch:
    """The same batch for ever: reading the text is not what is measured."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> Any:
        return self.batch


def in_turns(ours: Callable[[], int], peer: Callable[[], int], repeats: int = REPEATS) -> tuple[float, float]:
    """Median rates of two callables that return the units they worked through; each is warmed up once."""
    rates: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats + 1):
        for side, work in enumerate((ours, peer)):
            began = time.perf_counter()
            units = work()
            if repeat:
                rates[side].append(units / (time.perf_counter() - began))
    return statistics.median(rates[0]), statistics.median(rates[1])
