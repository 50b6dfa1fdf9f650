"""The fits that several claims look at: each row is a comparison of its own, so that no claim fits it twice."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from headstart.claims.base import ClaimEvent, EncoderRole, Part, PartBegan, Setting, key_of
from headstart.claims.costs import fit_minutes
from headstart.claims.data import TaskFiles
from headstart.claims.results import Measured
from headstart.comparison.compare import compare
from headstart.comparison.findings import Evidence, findings, stacked
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.significance import ROUNDS, interval, paired_interval
from headstart.errors import CheckpointError
from headstart.metrics import ACCURACY, F1, mean
from headstart.report.results import Cell, Comparison
from headstart.transfer.start import SCRATCH, STACK

METRICS = {metric.name: metric for metric in (ACCURACY, F1)}


@dataclass(frozen=True, slots=True)
class FitRow:
    """A way to solve a task: some encoders side by side, and how they are used. name: unique among the rows."""

    name: str
    title: str
    roles: tuple[EncoderRole, ...] = ()
    how: Literal["scratch", "frozen", "finetune"] = "frozen"
    mix: Literal["scalar", "last", "concat"] | None = None
    """None: as the library has it, scalar when frozen and last when fine-tuned."""

    def possible(self, setting: Setting) -> bool:
        return all(role in setting.encoders for role in self.roles)


@dataclass(frozen=True, slots=True)
class Fits:
    """Rows fitted to one task, each with the same labelled examples and seeds."""

    task: TaskFiles
    comparison: Comparison
    cells: list[Cell] = field(repr=False)
    """With what the metric counts of every dev example."""

    @property
    def rows(self) -> list[str]:
        return [row.name for row in self.comparison.rows]

    @property
    def labels(self) -> list[int]:
        return self.comparison.labels

    def of(self, row: str, labels: int) -> list[Cell]:
        """One for each seed, in their order."""
        return sorted(
            (cell for cell in self.cells if (cell.row, cell.labels) == (row, labels)), key=lambda cell: cell.seed
        )

    def score(self, row: str, labels: int) -> Measured:
        done = self.of(row, labels)
        found = interval(stacked(done), METRICS[self.comparison.metric])
        return Measured(mean([cell.score for cell in done]), found, "%")

    def difference(self, row: str, other: str, labels: int) -> tuple[Measured, float]:
        """How much better `other` is than `row`, in points, and its p."""
        metric = METRICS[self.comparison.metric]
        evidence = Evidence({cell.key: cell for cell in self.cells}, metric, ROUNDS)
        tested = evidence.between(row, other, labels)
        if tested is None:
            raise ValueError(f"{row} and {other} have no seed in common")
        a, b = stacked(self.of(row, labels)), stacked(self.of(other, labels))
        return Measured(tested[0], paired_interval(a, b, metric), "points"), tested[1]

    def collapsed(self) -> list[str]:
        """A sentence for each row of which some seeds gave one answer to everything."""
        return [
            f"{self.task.title}: {self.comparison.titles[entry.row]} with {entry.labels:,} labelled examples gave one "
            f"answer to everything in {entry.collapsed} of {len(entry.scores)} seeds."
            for entry in self.comparison.table
            if entry.collapsed
        ]


def fits_of(setting: Setting, task: TaskFiles, rows: Sequence[FitRow]) -> Generator[ClaimEvent, None, Fits]:
    """Fit the rows that the setting has encoders for; those fitted before are read."""
    parts: list[Comparison] = []
    cells: list[Cell] = []
    for row in rows:
        if row.possible(setting):
            yield PartBegan(part_title(task, row))
            results, found = yield from fitted(setting, task, row)
            facts = replace(results.rows[0], name=row.name, title=row.title)
            parts.append(replace(results, rows=[facts]))
            cells += [replace(cell, row=row.name) for cell in found]
    first = parts[0]
    described = [part.rows[0] for part in parts]
    table = findings(described, cells, first.labels, first.seeds, METRICS[first.metric])
    merged = replace(
        first,
        rows=described,
        cells=[cell.without_answers() for cell in cells],
        table=table.table,
        labels_saved=table.labels_saved,
        advice=table.advice,
    )
    return Fits(task, merged, cells)


def fitted(
    setting: Setting, task: TaskFiles, row: FitRow
) -> Generator[ClaimEvent, None, tuple[Comparison, list[Cell]]]:
    encoders = [setting.encoders[role] for role in row.roles]
    kind = STACK if len(encoders) > 1 else encoders[0].kind if encoders else SCRATCH
    name = SCRATCH if row.how == SCRATCH else f"{kind}-{row.how}"
    settings = {f"transfer.fitting.{key}": value for key, value in setting.scale.fitting.items()}
    if row.mix is not None:
        settings["transfer.mix.kind"] = row.mix
    key = key_of(
        task=task.name,
        data=setting.data.key,
        encoders=[one.fingerprint for one in encoders],
        how=row.how,
        settings=settings,
        labels=setting.scale.labels,
        seeds=setting.seeds,
    )
    out = setting.runs / "fits" / f"{task.name}-{row.name}-{key}"
    comparing = compare(
        task.task,
        train=task.train,
        dev=task.dev,
        out=out,
        with_="+".join(one.path for one in encoders) if encoders else (),
        rows=[name],
        labels=setting.scale.labels,
        seeds=setting.seeds,
        settings=settings,
        cache=setting.cache,
    )
    with closing(comparing):
        results = yield from comparing
    return results, whole_cells(results, out)


def whole_cells(results: Comparison, out: ComparisonFolder | object) -> list[Cell]:
    raise NotImplementedError


def part_title(task: TaskFiles, row: FitRow) -> str:
    return f"{task.title}: {row.title}"


def fit_parts(setting: Setting, tasks: Sequence[TaskFiles], rows: Sequence[FitRow]) -> list[Part]:
    """What `fits_of` will take for each task and row."""
    return [
        Part(part_title(task, row), fit_minutes(setting, task, row.roles, row.how))
        for task in tasks
        for row in rows
        if row.possible(setting)
    ]
