"""What a comparison reports while it runs, besides what pretraining and fitting report themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headstart.comparison.rows import Row
from headstart.report.results import Baseline, Cell, Comparison


@dataclass(frozen=True, slots=True)
class MeanSoFar:
    """One row at one number of labelled examples, over the seeds done so far."""

    row: str
    labels: int
    mean: float
    scores: list[float]
    collapsed: int
    """How many of the seeds gave one answer to everything."""


@dataclass(frozen=True, slots=True)
class Began:
    """The data are read and the rows chosen. `done` of the `cells` were found finished from before."""

    rows: list[Row]
    labels: list[int]
    seeds: list[int]
    cells: int
    done: int
    table: list[MeanSoFar]
    baseline: Baseline


@dataclass(frozen=True, slots=True)
class RowPretraining:
    """The pretraining of an encoder begins. seconds: its time; None if its own settings say how long."""

    kind: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class CellBegan:
    """The fit of one row, number of labelled examples and seed begins. process: the rank of the one that fits it."""

    row: str
    labels: int
    seed: int
    process: int = 0


@dataclass(frozen=True, slots=True)
class CellDone:
    """A cell is fitted and saved. table: the means of all cells done so far; seconds_left: for rows of which a cell is
    done; all_tried: whether these are all rows."""

    cell: Cell
    table: list[MeanSoFar]
    done: int
    total: int
    seconds_left: float
    all_tried: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything is done. results: what results.json holds. out: the folder with the report."""

    results: Comparison
    out: Path
