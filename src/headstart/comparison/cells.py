"""The cells of a comparison: every row, number of labelled examples and seed, each fitted once and saved."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headstart.comparison.data import Data
from headstart.comparison.events import CellBegan, CellDone
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.rows import Row
from headstart.comparison.summary import seconds_left, table_so_far
from headstart.errors import settings_renamed
from headstart.progress import Notice, Progress
from headstart.report.results import Cell, LayerWeights
from headstart.tasks.base import Task
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import FeatureTable
from headstart.transfer.fit import Fitted, gather_features, measure_forgetting, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import Start
from headstart.transfer.task_files import save_task_model

CellEvent = Progress | FitStep | Notice | CellBegan | CellDone
Place = tuple[Row, int, int]
"""(row, labels, seed)"""
REPEATED = {"text", "words", "first", "second", "id", "question", "context", "document", "part", "sentences"}
NOT_KEPT = REPEATED | {"best", "mentions"}
"""What answers repeat of their example; the other candidates of a question, which are twenty times as much as its
answer; the mentions of chains once more, with their texts."""


@dataclass(slots=True)
class Cells:
    """All cells of a comparison, done and to do."""

    rows: list[Row]
    data: Data
    folder: ComparisonFolder
    cache: Path
    done: list[Cell] = field(default_factory=list)
    features: dict[str, list[FeatureTable]] = field(default_factory=dict)
    """By the name of the row; frozen rows only."""

    def places(self) -> Iterator[Place]:
        """Few examples first, seed by seed, all rows of a draw together, so that a table half way is a fair one."""
        for labels in self.data.labels:
            for seed in self.data.seeds:
                yield from ((row, labels, seed) for row in self.rows)

    def total(self) -> int:
        return len(self.rows) * len(self.data.labels) * len(self.data.seeds)

    def find_done(self) -> None:
        found = (self.read(row.name, labels, seed) for row, labels, seed in self.places())
        self.done = [cell for cell in found if cell is not None]

    def read(self, row: str, labels: int, seed: int) -> Cell | None:
        return self.folder.read_cell(row, labels, seed, len(self.data.dev))

    def left(self) -> list[Place]:
        finished = {cell.key for cell in self.done}
        return [(row, labels, seed) for row, labels, seed in self.places() if (row.name, labels, seed) not in finished]

    def add(self, cell: Cell, processes: int) -> CellDone:
        """One more that is done. processes: how many fit cells."""
        self.done.append(cell)
        return CellDone(
            cell,
            table_so_far(self.done),
            len(self.done),
            self.total(),
            seconds_left(self.done, [(row.name, labels) for row, labels, _ in self.left()], processes),
            all_tried={cell.row for cell in self.done} == {row.name for row in self.rows},
        )

    def gather(self, row: Row, start: Start, config: TransferConfig) -> Generator[Progress, None, None]:
        """The features of a frozen row, of all examples."""
        self.features[row.name] = yield from gather_features(
            start, self.data.task, self.data.examples(), config, self.cache
        )

    def in_order(self) -> list[Cell]:
        """The cells done, in the order of the plan, whatever the order they were fitted in."""
        found = {cell.key: cell for cell in self.done}
        keys = [(row.name, labels, seed) for row, labels, seed in self.places()]
        return [found[key] for key in keys if key in found]

    def fit(self, place: Place, start: Start, config: TransferConfig) -> Generator[CellEvent, None, Cell]:
        """Fit one cell and save it, and its model if that is its row's best."""
        row, labels, seed = place
        data, features = self.data, self.features.get(row.name)
        with settings_renamed(lambda setting: f"rows.{row.group}.{setting}"):
            fitted = yield from transfer_once(
                start,
                config,
                data.task,
                data.draws[labels, seed],
                data.dev,
                seed=seed,
                features=features,
                cache=self.cache,
            )
        cell = cell_of(place, fitted, data)
        if labels == data.labels[-1]:
            if start.run is not None:  # weights of others come without their held-out text
                forgotten = yield from measure_forgetting(start, fitted, cache=self.cache, advice=None)
                cell = replace(cell, forgetting=forgotten)
            record = {"row": row.name, "labels": labels, "seed": seed, **cell.scores}
            self.folder.keep_if_best(cell, record, lambda path: save_task_model(fitted.model, path, record))
        self.folder.write_cell(cell)
        return cell


def cell_of(place: Place, fitted: Fitted, data: Data) -> Cell:
    row, labels, seed = place
    return Cell(
        row=row.name,
        labels=labels,
        seed=seed,
        metric=data.task.metric.name,
        scores=fitted.scores,
        seconds=fitted.seconds,
        steps=fitted.steps,
        best_step=fitted.best_step,
        curve=fitted.curve,
        parameters=fitted.parameters,
        collapsed=fitted.collapsed,
        truncated=fitted.truncated,
        mix={where: LayerWeights(**weights) for where, weights in fitted.mix.items()},
        counts=fitted.counts,
        answers=[answer_of(data.task, *pair) for pair in zip(data.dev, fitted.answers, strict=True)],
    )


def answer_of(task: Task[Any, Any], example: Any, answer: Any) -> dict[str, Any]:
    """An answer as plain values, without what it repeats of its example."""
    return {name: value for name, value in task.as_json(example, answer).items() if name not in NOT_KEPT}
