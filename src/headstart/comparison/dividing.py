"""The cells of a comparison divided among processes: each is fitted by the first one that claims it.

Every process writes the cells that it fits into the folder. The first one hears of them, and alone writes the results.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from headstart.comparison.cells import CellEvent, Cells, Place
from headstart.comparison.events import CellBegan
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.rows import Row
from headstart.errors import CheckpointError, EndedElsewhereError
from headstart.progress import Notice, Progress
from headstart.report.results import Cell
from headstart.training.coordination import POLL_SECONDS, polling
from headstart.training.ranks import Ranks
from headstart.training.shared_folder import is_seen, marked
from headstart.transfer.config import TransferConfig
from headstart.transfer.start import Start

FOLDER, CELLS = "folder", "cells"
BEGAN, DONE, SAID = "began", "done", "said"
Work = Mapping[str, tuple[Start, TransferConfig]]
"""By the name of the row."""


@dataclass(slots=True)
class Claims:
    """The cells that this process may still fit, in the order of the plan."""

    ranks: Ranks
    left: list[Place]
    readable: set[str] = field(default_factory=set)
    """Encoders whose features are in the cache, or are computed by this process."""

    def next(self) -> Place | None:
        """A cell that belongs to this process now. None if no cell is left but those that wait for features."""
        waiting: list[Place] = []
        busy: set[str] = set()
        try:
            while self.left:
                place = self.left.pop(0)
                row = place[0]
                if row.name in busy or not self._can_read(row):
                    busy.add(row.name)
                    waiting.append(place)
                elif self.ranks.claim(cell_key(place)):
                    return place
            return None
        finally:
            self.left = waiting + self.left

    def _can_read(self, row: Row) -> bool:
        """Whether the features of a row are there or for this process to compute: two would compute the same."""
        for name in encoders_of(row):
            if name not in self.readable:
                key = self._features_key(name)
                if not self.ranks.claim(key) and self.ranks.published(key) is None:
                    return False
                self.readable.add(name)
        return True

    def computed(self, row: Row) -> None:
        """The features of a row are in the cache."""
        for name in encoders_of(row):
            self.ranks.publish(self._features_key(name), True)

    def _features_key(self, encoder: str) -> str:
        return f"features/{self.ranks.launch.machine}/{encoder}"  # each machine may have a cache of its own


def encoders_of(row: Row) -> list[str]:
    """The encoders whose features a row reads, in an order that is the same for all rows: nobody waits in a circle."""
    if row.source is None or row.how != "frozen":
        return []
    return sorted(str(path) for path in row.source.parts or (row.source.path,))


@contextmanager
def shown(folder: ComparisonFolder, ranks: Ranks) -> Iterator[None]:
    """Let the other processes know that the comparison has begun, and by a new file whether they see its folder."""
    if ranks.launch.world == 1:
        yield
        return
    with marked(folder.path) as mark:
        ranks.publish(FOLDER, mark.name)
        yield


def check_seen(folder: ComparisonFolder, mark: str) -> None:
    if not is_seen(folder.path / mark):
        raise CheckpointError(
            f"{folder.path}: is not the folder of the first process. Give an --out that all processes see, on one "
            "machine or on a file system that the machines share."
        )


@dataclass(slots=True)
class Reports:
    """What the others tell the first process of their cells: numbered messages of each of them."""

    ranks: Ranks
    seen: Counter[int] = field(default_factory=Counter)
    """How many of each process were told, or read."""

    def tell(self, kind: str, content: Any) -> None:
        rank = self.ranks.launch.rank
        self.ranks.publish(report_key(rank, self.seen[rank]), [kind, content])
        self.seen[rank] += 1

    def told(self, events: Generator[CellEvent, None, Cell]) -> Generator[CellEvent, None, Cell]:
        """The events of a cell, of which the first process is told what it shows."""
        with closing(events):
            while True:
                try:
                    event = next(events)
                except StopIteration as end:
                    cell: Cell = end.value
                    self.tell(DONE, cell.key)
                    return cell
                if isinstance(event, Notice):
                    self.tell(SAID, event.text)
                elif isinstance(event, CellBegan):
                    self.tell(BEGAN, (event.row, event.labels, event.seed))
                yield event

    def new(self) -> Iterator[tuple[int, str, Any]]:
        """(rank, kind, content) of those that came since the last time."""
        for rank in range(1, self.ranks.launch.world):
            while (message := self.ranks.published(report_key(rank, self.seen[rank]))) is not None:
                self.seen[rank] += 1
                yield rank, *message


def lead_cells(cells: Cells, work: Work, ranks: Ranks) -> Generator[CellEvent, None, None]:
    """For the first process: fit cells as the others do, until all are done."""
    left, reports, world = cells.left(), Reports(ranks), ranks.launch.world
    claims = Claims(ranks, left)
    ranks.publish(CELLS, [key_of(place) for place in left])

    def heard() -> Iterator[CellEvent]:
        for rank, kind, told in reports.new():
            if kind == SAID:
                yield Notice(told)
            elif kind == BEGAN:
                row, labels, seed = told
                yield CellBegan(row, labels, seed, process=rank)
            else:
                path = cells.folder.cell_path(*told)
                cell = cells.read(*told) if is_seen(path) else None
                if cell is None:
                    raise CheckpointError(
                        f"{path}: was written by process {rank}, and cannot be read by the first one."
                    )
                yield cells.add(cell, world)

    while len(cells.done) < cells.total():
        place = claims.next()
        if place is not None:
            cell = yield from polling(fit_cell(cells, place, work, claims), heard)
            yield cells.add(cell, world)
            continue
        yield from heard()
        yield Progress("waiting for the other processes", 0, 0, "")
        time.sleep(POLL_SECONDS)


def help_with_cells(
    cells: Cells, left: Sequence[tuple[str, int, int]], work: Work, ranks: Ranks
) -> Generator[CellEvent, None, None]:
    """For the others: fit those of these cells that they claim, until none is left."""
    rows = {row.name: row for row in cells.rows}
    claims, reports = Claims(ranks, [(rows[row], labels, seed) for row, labels, seed in left]), Reports(ranks)

    def stopping() -> Iterator[CellEvent]:
        if ranks.stopping():
            raise EndedElsewhereError("A stop was asked for.")
        return iter(())

    while claims.left:
        place = claims.next()
        if place is None:
            yield Progress("waiting for features", 0, 0, "")
            yield from stopping()
            time.sleep(POLL_SECONDS)
            continue
        yield from polling(reports.told(fit_cell(cells, place, work, claims)), stopping)


def fit_cell(cells: Cells, place: Place, work: Work, claims: Claims) -> Generator[CellEvent, None, Cell]:
    row, labels, seed = place
    start, config = work[row.name]
    if row.how == "frozen" and row.name not in cells.features:
        yield from cells.gather(row, start, config)
        claims.computed(row)
    yield CellBegan(row.name, labels, seed, process=claims.ranks.launch.rank)
    return (yield from cells.fit(place, start, config))


def key_of(place: Place) -> tuple[str, int, int]:
    row, labels, seed = place
    return row.name, labels, seed


def cell_key(place: Place) -> str:
    return f"cell/{'/'.join(map(str, key_of(place)))}"


def report_key(rank: int, number: int) -> str:
    return f"report/{rank}/{number}"
