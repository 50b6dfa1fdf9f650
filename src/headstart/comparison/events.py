"""What the watcher of a comparison is told, besides what pretraining and fitting tell themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headstart.comparison.rows import Row
from headstart.config import Table


@dataclass(frozen=True, slots=True)
class Began:
    """The plan stands. `done` of the `cells` were found finished from before."""

    rows: list[Row]
    labels: list[int]
    seeds: list[int]
    cells: int
    done: int
    table: list[Table]


@dataclass(frozen=True, slots=True)
class RowPretraining:
    """An encoder of this kind is pretrained now, for so many seconds (None: by its own settings)."""

    kind: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class CellBegan:
    """One row, budget of labels and seed is now fitted."""

    row: str
    labels: int
    seed: int


@dataclass(frozen=True, slots=True)
class CellDone:
    """A cell is saved. `table` holds a mean over the seeds done for every row and budget that has any."""

    cell: Table
    table: list[Table]
    done: int
    total: int
    seconds_left: float


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything is done: the contents of results.json, and the folder with the report."""

    results: Table
    out: Path
