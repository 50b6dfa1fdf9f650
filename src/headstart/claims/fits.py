"""The fits that several claims look at: each row is a comparison of its own, so that no claim fits it twice."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from headstart.claims.base import ClaimEvent, Part, PartBegan, Setting, key_of
from headstart.claims.costs import fit_minutes
from headstart.claims.data import TaskFiles
from headstart.claims.encoders import Encoder, EncoderRole
from headstart.claims.results import ClaimTable, Measured, TableCell
from headstart.claims.scales import FitSizes, How
from headstart.comparison.compare import compare
from headstart.comparison.findings import findings, stacked
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.significance import error_reduction, interval, paired, paired_interval
from headstart.errors import CheckpointError
from headstart.metrics import Metric, mean
from headstart.report.results import Cell, Comparison
from headstart.report.results_json import read_comparison
from headstart.tasks import task_class
from headstart.transfer.start import SCRATCH, STACK

MixKind = Literal["scalar", "last", "concat"]


@dataclass(frozen=True, slots=True)
class FitRow:
    """A way to solve a task: encoders, side by side if there are several, and how they are used."""

    name: str
    """Unique among the rows that are compared."""
    title: str
    encoders: tuple[Encoder, ...] = ()
    how: How = "frozen"
    mix: MixKind | None = None
    """None: the library's default, scalar when frozen and last when fine-tuned."""

    @property
    def kind(self) -> str:
        return STACK if len(self.encoders) > 1 else self.encoders[0].kind if self.encoders else SCRATCH


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A row of encoders by the parts they play; it is left out where nobody plays one of them."""

    name: str
    title: str
    roles: tuple[EncoderRole, ...] = ()
    how: How = "frozen"
    mix: MixKind | None = None


def rows_in(setting: Setting, plans: Sequence[RowPlan]) -> list[FitRow]:
    return [
        FitRow(plan.name, plan.title, tuple([setting.encoders[role] for role in plan.roles]), plan.how, plan.mix)
        for plan in plans
        if all(role in setting.encoders for role in plan.roles)
    ]


@dataclass(frozen=True, slots=True)
class Fits:
    """Rows fitted to one task, each with the same labelled examples and seeds."""

    task: TaskFiles
    comparison: Comparison
    cells: list[Cell] = field(repr=False)
    """With what the metric counts of every dev example."""
    score_metric: Metric

    @property
    def labels(self) -> list[int]:
        return self.comparison.labels

    @property
    def metric(self) -> str:
        """What a score is called, such as "sentiment, accuracy in %"."""
        return f"{self.task.title}, {self.comparison.metric_title} in %"

    def has(self, *rows: str) -> bool:
        return set(rows) <= set(self.comparison.titles)

    def of(self, row: str, labels: int) -> list[Cell]:
        """One for each seed, in their order."""
        found = [cell for cell in self.cells if (cell.row, cell.labels) == (row, labels)]
        return sorted(found, key=lambda cell: cell.seed)

    def score(self, row: str, labels: int) -> Measured:
        done = self.of(row, labels)
        found = interval(stacked(done), self.score_metric)
        return Measured(mean([cell.score for cell in done]), found, "%")

    def difference(self, row: str, other: str, labels: int, other_labels: int | None = None) -> tuple[Measured, float]:
        """How much better `other` is than `row`, in points, and its p. other_labels: what `other` learned from."""
        a, b = stacked(self.of(row, labels)), stacked(self.of(other, other_labels or labels))
        difference, p = paired(a, b, self.score_metric)
        return Measured(difference, paired_interval(a, b, self.score_metric), "points"), p

    def error_reduction(self, row: str, other: str, labels: int) -> Measured:
        """The share of the error of `row` that `other` does not make."""
        a, b = stacked(self.of(row, labels)), stacked(self.of(other, labels))
        return Measured(*error_reduction(a, b, self.score_metric), "%")

    def table(self) -> ClaimTable:
        """Rows by numbers of labelled examples."""
        titles = self.comparison.titles
        rows: list[list[TableCell]] = [
            [title, *(self.score(name, labels) for labels in self.labels)] for name, title in titles.items()
        ]
        return ClaimTable(self.metric, ["", *(f"{labels:,} labelled" for labels in self.labels)], rows)

    def collapsed(self) -> list[str]:
        """A sentence about the rows of which some seeds gave one answer to everything, if there are any."""
        titles = self.comparison.titles
        found = [
            f"{titles[entry.row]} with {entry.labels:,} labelled ({entry.collapsed} of {len(entry.scores)})"
            for entry in self.comparison.table
            if entry.collapsed
        ]
        return [f"{self.task.title}: seeds that gave one answer to everything: {'; '.join(found)}."] if found else []


def fits_of(
    setting: Setting, task: TaskFiles, rows: Sequence[FitRow], sizes: FitSizes | None = None
) -> Generator[ClaimEvent, None, Fits]:
    """Fit the rows to the task; those fitted before, for this or another claim, are read.

    sizes: None for those that most claims share.
    """
    parts: list[Comparison] = []
    cells: list[Cell] = []
    for row in rows:
        yield PartBegan(part_title(task, row))
        results, found = yield from fitted(setting, task, row, sizes or setting.scale.fits)
        parts.append(replace(results, rows=[replace(results.rows[0], name=row.name, title=row.title)]))
        cells += [replace(cell, row=row.name) for cell in found]
    first, described = parts[0], [part.rows[0] for part in parts]
    metric = metric_of(task)
    table = findings(described, cells, first.labels, first.seeds, metric)
    merged = replace(
        first,
        rows=described,
        cells=[cell.without_answers() for cell in cells],
        table=table.table,
        labels_saved=table.labels_saved,
        advice=table.advice,
    )
    return Fits(task, merged, cells, metric)


def metric_of(task: TaskFiles) -> Metric:
    """By which the task is scored; of tags, their names decide."""
    kind = task_class(task.task)
    return kind.learn(kind.read(task.train, kind.Input())).metric


def fitted(
    setting: Setting, task: TaskFiles, row: FitRow, sizes: FitSizes
) -> Generator[ClaimEvent, None, tuple[Comparison, list[Cell]]]:
    settings: dict[str, Any] = {f"transfer.fitting.{key}": value for key, value in sizes.fitting[row.how].items()}
    if row.mix is not None:
        settings["transfer.mix.kind"] = row.mix
    labels, seeds = sizes.labels, setting.seeds
    key = key_of(
        task=task.name,
        data=setting.data.key_of(task.name),
        encoders=[one.fingerprint for one in row.encoders],
        how=row.how,
        settings=settings,
        labels=labels,
        seeds=seeds,
    )
    out = setting.runs / "fits" / f"{task.name}-{row.name}-{key}"
    if (out / "results.json").is_file():  # written last, and the key has everything that decides it
        results = read_comparison(out / "results.json")
        return results, read_cells(results, out)
    comparing = compare(
        task.task,
        train=task.train,
        dev=task.dev,
        out=out,
        with_="+".join(one.path for one in row.encoders) if row.encoders else (),
        rows=[SCRATCH if row.how == SCRATCH else f"{row.kind}-{row.how}"],
        labels=labels,
        seeds=seeds,
        settings=settings,
        report=False,
        cache=setting.cache,
    )
    with closing(comparing):
        results = yield from comparing
    return results, read_cells(results, out)


def read_cells(results: Comparison, out: Path) -> list[Cell]:
    """The cells of a comparison as their own files have them: with the counts that tests need."""
    folder, (row,) = ComparisonFolder(out), results.rows
    found = []
    for labels in results.labels:
        for seed in results.seeds:
            cell = folder.read_cell(row.name, labels, seed, results.dev.examples)
            if cell is None:
                raise CheckpointError(f"{folder.cell_path(row.name, labels, seed)}: is gone or broken. Start again.")
            found.append(cell)
    return found


def part_title(task: TaskFiles, row: FitRow) -> str:
    return f"{task.title}: {row.title}"


def fit_parts(
    setting: Setting, tasks: Sequence[TaskFiles], rows: Sequence[FitRow], sizes: FitSizes | None = None
) -> list[Part]:
    """What `fits_of` will take for each task and row."""
    parts = []
    for task in tasks:
        for row in rows:
            encoders = [(one.kind, one.shape) for one in row.encoders]
            minutes = fit_minutes(sizes or setting.scale.fits, setting.scale.seeds, task, row.how, encoders)
            parts.append(Part(part_title(task, row), minutes))
    return parts
