"""From cells to results: the table so far, the time left, and at the end everything that the report shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from headstart.comparison.data import Data, baseline_of, facts_of
from headstart.comparison.events import MeanSoFar
from headstart.comparison.examples import shown_examples
from headstart.comparison.findings import findings
from headstart.comparison.own_encoders import row_facts
from headstart.comparison.rows import KINDS, Row
from headstart.metrics import mean
from headstart.report.results import Cell, Comparison


def table_so_far(cells: Sequence[Cell]) -> list[MeanSoFar]:
    """The mean over the seeds done, for every row and number of labelled examples that has any."""
    found: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        found[cell.row, cell.labels].append(cell)
    return [
        MeanSoFar(
            row=row,
            labels=labels,
            mean=mean([cell.score for cell in done]),
            scores=[cell.score for cell in done],
            collapsed=sum(cell.collapsed for cell in done),
        )
        for (row, labels), done in found.items()
    ]


def seconds_left(done: Sequence[Cell], left: Sequence[tuple[str, int]], processes: int = 1) -> float:
    """left: (row, labels) of each cell to do. A cell is expected to take as long as those most like it took; a row that
    was not tried yet may take any time, and does not count. processes: those that fit cells at the same time."""
    took: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in done:
        took[cell.row][cell.labels].append(cell.seconds)
    total = 0.0
    for row, labels in left:
        if row in took:
            nearest = min(took[row], key=lambda count: abs(count - labels))
            total += mean(took[row][nearest])
    return total / max(1, min(processes, len(left)))


def results_of(rows: list[Row], cells: list[Cell], data: Data, train: Path, dev: Path) -> Comparison:
    """Everything that results.json holds. Cells are in the order of the plan."""
    described, baseline = [row_facts(row) for row in rows], baseline_of(data)
    found = findings(described, cells, data.labels, data.seeds, data.task.metric, baseline)
    short = [f"Pretraining of {KINDS[row.kind]}: {shortfall}" for row in described for shortfall in row.shortfalls]
    return Comparison(
        task=data.task.name,
        task_title=data.task.title,
        headstart=version("headstart"),
        train=facts_of(data.task, data.train, train),
        dev=facts_of(data.task, data.dev, dev),
        labels=data.labels,
        seeds=data.seeds,
        metric=data.task.metric.name,
        metric_title=data.task.metric.title,
        rows=described,
        cells=[cell.without_answers() for cell in cells],
        table=found.table,
        labels_saved=found.labels_saved,
        advice=found.advice,
        baseline=baseline,
        notices=[*data.notices, *dict.fromkeys(short)],
        examples=shown_examples(described, cells, found.table, data),
    )
