"""What a pretraining run reports besides its steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Planned:
    """What the run is about to do."""

    kind: str
    size: str | None
    out: Path
    unit: str
    parameters: int
    vocabulary: int
    documents: int
    units: int
    valid_units: int
    steps: int | None
    steps_per_epoch: int
    budget: float | None
    memory_bytes: int
    disk_bytes: int
    device: str
    threads: int
    resumed_at: int
    first_scores: dict[str, float]
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Joined:
    """A process that is not the first one is ready to take each step with it. It reports no steps of its own."""

    rank: int
    world: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The result, or how far the run had come when it was stopped."""

    out: Path
    steps: int
    units: int
    elapsed: float
    scores: dict[str, float]
    kept_step: int
    shortfalls: tuple[str, ...] = ()
    """Why the run got less training than it was meant to, a sentence each."""
