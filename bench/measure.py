"""How ways of doing the same work are timed: in turns, in one process, by their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTLING_SECONDS = 0.2
"""Before every pass: threads of the side before, which wait for more work without sleeping, then give up the cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every work is told: where the text is, how often to measure, and whether a small sample will do."""

    data: Path
    repeats: int = 5
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row of the table. Rates are units per second, one of each repeat; a ratio of 2 means twice as fast."""

    work: str
    unit: str
    ours: Sequence[float]
    peer: Sequence[float]
    peer_name: str
    goal: float | None
    """The least ratio that is wanted; None: the row is there to be seen."""
    flops_per_unit: float | None = None
    """Floating-point operations of the matrix products that the mathematics needs for one unit."""
    note: str = ""
    shortfall: str = ""
    """What was wanted besides the ratio and is not there."""

    @property
    def rate(self) -> float:
        return statistics.median(self.ours)

    @property
    def peer_rate(self) -> float:
        return statistics.median(self.peer)

    @property
    def ratio(self) -> float:
        return self.rate / self.peer_rate

    @property
    def reached(self) -> bool:
        return (self.goal is None or self.ratio >= self.goal) and not self.shortfall

    def share(self, ceiling: float) -> float | None:
        """The part of the machine's own speed that this work uses. ceiling: operations per second."""
        return None if self.flops_per_unit is None else self.rate * self.flops_per_unit / ceiling


@dataclass(frozen=True, slots=True)
class Timed:
    """A pass that timed itself, because not all of it is what is measured."""

    units: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Side:
    """One way of doing the work. `work` returns the units it went through; `before` is not timed."""

    work: Callable[[], float | Timed]
    before: Callable[[], None] | None = None


class OneBatch:
    """The same batch for ever: reading the text is not what is measured."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> Any:
        return self.batch


def in_turns(sides: Mapping[str, Side], repeats: int) -> dict[str, list[float]]:
    """Each side's rate in every repeat, after one round that warms all of them up.

    What is measured once is measured the first time: works check beforehand that their sides agree, which warms them.
    """
    rates: dict[str, list[float]] = {name: [] for name in sides}
    with_threads = threads_of_torch()
    warming = 1 if repeats > 1 else 0
    for repeat in range(repeats + warming):
        for name, side in sides.items():
            if side.before is not None:
                side.before()
            if threads_of_torch() != with_threads:
                raise RuntimeError(
                    f"before {name}, torch has {threads_of_torch()} threads; it began with {with_threads}"
                )
            time.sleep(SETTLING_SECONDS)
            rate = rate_of(side)
            if repeat >= warming:
                rates[name].append(rate)
    return rates


def rate_of(side: Side) -> float:
    began = time.perf_counter()
    done = side.work()
    seconds = time.perf_counter() - began
    return done.units / done.seconds if isinstance(done, Timed) else done / seconds


def threads_of_torch() -> int:
    """A side that changes the other's number of threads would win by it."""
    import torch

    return torch.get_num_threads()


def check_close(what: str, ours: Any, theirs: Any, tolerance: float) -> None:
    """Two speeds are compared only if they are of the same computation. Both are arrays or tensors of one shape."""
    if tuple(ours.shape) != tuple(theirs.shape):
        raise RuntimeError(f"{what}: the shapes differ, ours {tuple(ours.shape)}, theirs {tuple(theirs.shape)}")
    apart = float(abs(ours - theirs).max())
    if not apart <= tolerance:
        raise RuntimeError(f"{what}: ours and theirs are {apart:.2g} apart, more than {tolerance:.2g}")
