"""The cells of a comparison: every row with every budget of labels and every seed, each fitted once and saved."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headstart.comparison.data import Data
from headstart.comparison.events import CellBegan, CellDone
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.rows import Row
from headstart.comparison.summary import seconds_left, table_so_far
from headstart.config import Table
from headstart.progress import Notice, Progress
from headstart.transfer.features import FeatureTable
from headstart.transfer.fit import Fitted, gather_features, measure_forgetting, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import Start
from headstart.transfer.task_model import TransferConfig

ROUNDED_TO = 6
CellEvent = Progress | FitStep | Notice | CellBegan | CellDone
Place = tuple[Row, int, int]
"""(row, labels, seed): which cell it is."""


@dataclass(slots=True)
class Cells:
    """All cells of a comparison, those done and those to do."""

    rows: list[Row]
    data: Data
    folder: ComparisonFolder
    cache: Path
    done: list[Table] = field(default_factory=list)
    features: dict[str, FeatureTable] = field(default_factory=dict)
    """By row; only of frozen ones."""

    def places(self) -> Iterator[Place]:
        """Few labels first, seed by seed, all rows of one draw together: whenever it is stopped, the table is fair."""
        for labels in self.data.labels:
            for seed in self.data.seeds:
                yield from ((row, labels, seed) for row in self.rows)

    def total(self) -> int:
        return len(self.rows) * len(self.data.labels) * len(self.data.seeds)

    def find_done(self) -> None:
        found = (self.folder.read_cell(*place, len(self.data.dev)) for place in self.places())
        self.done = [cell for cell in found if cell is not None]

    def run(self, starts: dict[str, Start], configs: dict[str, TransferConfig]) -> Generator[CellEvent, None, None]:
        """Fit what is not done. starts, configs: by row name."""
        finished = {(cell["row"], cell["labels"], cell["seed"]) for cell in self.done}
        for row, labels, seed in self.places():
            if (row.name, labels, seed) in finished:
                continue
            start, config = starts[row.name], configs[row.name]
            if row.how == "frozen" and row.name not in self.features:
                self.features[row.name] = yield from gather_features(start, self.data.texts(), config, self.cache)
            yield CellBegan(row.name, labels, seed)
            self.done.append((yield from self._fit((row, labels, seed), start, config)))
            yield CellDone(
                self.done[-1],
                table_so_far(self.done),
                len(self.done),
                self.total(),
                seconds_left(self.done, self._left()),
            )

    def in_order(self) -> list[Table]:
        """The cells done, in the order of the plan, whatever the order they were fitted in."""
        found = {(cell["row"], cell["labels"], cell["seed"]): cell for cell in self.done}
        keys = [(row.name, labels, seed) for row, labels, seed in self.places()]
        return [found[key] for key in keys if key in found]

    def _left(self) -> list[tuple[str, int]]:
        finished = {(cell["row"], cell["labels"], cell["seed"]) for cell in self.done}
        return [(row.name, n) for row, n, seed in self.places() if (row.name, n, seed) not in finished]

    def _fit(self, place: Place, start: Start, config: TransferConfig) -> Generator[CellEvent, None, Table]:
        row, labels, seed = place
        data = self.data
        fitted = yield from transfer_once(
            start,
            config,
            data.draws[labels, seed],
            data.dev,
            data.names,
            seed=seed,
            features=self.features.get(row.name),
            cache=self.cache,
        )
        forgot: Table | None = None
        if labels == data.labels[-1]:
            if start.run is not None:  # one pretrained elsewhere came without its text
                measured = yield from measure_forgetting(start, fitted, cache=self.cache)
                forgot = None if measured is None else asdict(measured)
            record = {"row": row.name, "labels": labels, "seed": seed, **fitted.scores}
            self.folder.keep_if_best(row, record, lambda path: fitted.classifier.save(path, record))
        cell = cell_of(place, fitted, forgot)
        self.folder.write_cell(row, cell)
        return cell


def cell_of(place: Place, fitted: Fitted, forgot: Table | None) -> Table:
    row, labels, seed = place
    return {
        "row": row.name,
        "labels": labels,
        "seed": seed,
        "accuracy": fitted.scores["accuracy"],
        "macro_f1": fitted.scores["macro_f1"],
        "seconds": fitted.seconds,
        "steps": fitted.steps,
        "best_step": fitted.best_step,
        "parameters": fitted.parameters,
        "collapsed": fitted.collapsed,
        "truncated": fitted.truncated,
        "mix": fitted.mix,
        "forgetting": forgot,
        # Taken before rounding, so that a tie in the rounded figures cannot change what was predicted.
        "predicted": fitted.probabilities.argmax(axis=1).tolist(),
        "probabilities": fitted.probabilities.astype(float).round(ROUNDED_TO).tolist(),
    }
