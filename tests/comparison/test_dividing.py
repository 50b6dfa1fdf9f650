"""Cells divided among processes that are played by threads, with fits that only sleep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headstart.training.shared_folder as shared_folder
from headstart.comparison.cells import Cells, Place
from headstart.comparison.compare import compare
from headstart.comparison.dividing import CELLS, Claims, help_with_cells, lead_cells
from headstart.comparison.events import CellBegan, CellDone
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.rows import Row, RowEncoder
from headstart.errors import CheckpointError, EndedElsewhereError, HeadstartError
from headstart.progress import Notice, Progress, result_of
from headstart.report.results import Cell
from headstart.training.coordination import awaited
from headstart.training.ranks import Alone


def row(name: str, *encoders: str) -> Row:
    source = RowEncoder("stack", Path("+".join(encoders)), parts=tuple(map(Path, encoders))) if encoders else None
    return Row(name, name, name, "stack" if encoders else "scratch", "frozen" if encoders else "finetune", source)


ROWS = [row("scratch"), row("words", "words"), row("elmo", "elmo"), row("both", "words", "elmo")]


class SleepingCells(Cells):
    """Cells whose fits sleep.

    computing: how often the features of an encoder are being computed; overlaps: encoders of which that was twice.
    """

    naps = 3

    def __init__(self, out: Path, rows: list[Row], fitted: list[tuple[str, int, int]]) -> None:
        data = SimpleNamespace(labels=[4, 10], seeds=[0, 1, 2], dev=[], task=None)
        super().__init__(rows, data, ComparisonFolder(out), out)  # type: ignore[arg-type]
        self.fitted = fitted
        self.computing: Counter[str] = Counter()
        self.overlaps: list[str] = []

    def gather(self, row: Row, start: Any, config: Any) -> Generator[Progress, None, None]:
        assert row.source is not None
        for path in row.source.parts:
            entry = self.folder.path / f"features-of-{path}"
            if entry.exists():
                continue
            self.computing[str(path)] += 1
            if self.computing[str(path)] > 1:
                self.overlaps.append(str(path))
            for _ in range(10):
                time.sleep(0.01)
                yield Progress("encoding", 0, 0)
            entry.touch()
            self.computing[str(path)] -= 1
        self.features[row.name] = []

    def fit(self, place: Place, start: Any, config: Any) -> Generator[Any, None, Cell]:
        own, labels, seed = place
        for _ in range(self.naps):
            time.sleep(0.005)
            yield Progress("fitting", 0, 0)
        yield Notice(f"about {own.name} {labels} {seed}")
        self.fitted.append((own.name, labels, seed))
        cell = cell_of((own.name, labels, seed))
        self.folder.write_cell(cell)
        return cell

    def read(self, row: str, labels: int, seed: int) -> Cell | None:
        key = (row, labels, seed)
        return cell_of(key) if self.folder.cell_path(*key).exists() else None


def cell_of(key: tuple[str, int, int]) -> Cell:
    row, labels, seed = key
    return Cell(
        row=row, labels=labels, seed=seed, metric="accuracy", scores={"accuracy": 0.5}, seconds=0.01, steps=1,
        best_step=1, collapsed=False, mix={}, parameters=1, truncated=0,
    )  # fmt: skip


WORK: Any = {row.name: (None, None) for row in ROWS}


def divided(in_threads: Any, out: Path, rows: list[Row], world: int) -> tuple[list[Any], list[SleepingCells]]:
    """The first process's events, and the cells of every process."""
    (out / "cells").mkdir()
    computing, overlaps = Counter[str](), list[str]()

    def work(ranks: Any) -> tuple[list[Any], SleepingCells]:
        cells = SleepingCells(out, rows, [])
        cells.computing, cells.overlaps = computing, overlaps
        if ranks.launch.is_first:
            return list(lead_cells(cells, WORK, ranks)), cells
        left = result_of(awaited(ranks, CELLS))
        return list(help_with_cells(cells, left, WORK, ranks)), cells

    found = in_threads(world, work)
    return found[0][0], [cells for _, cells in found]


def test_every_cell_is_fitted_once_and_the_first_process_hears_of_all(in_threads: Any, tmp_path: Path) -> None:
    events, processes = divided(in_threads, tmp_path, ROWS[:1], 3)
    keys = [("scratch", labels, seed) for labels in (4, 10) for seed in (0, 1, 2)]
    began = [(event.row, event.labels, event.seed) for event in events if isinstance(event, CellBegan)]
    done = [event for event in events if isinstance(event, CellDone)]
    assert sorted(began) == sorted(event.cell.key for event in done) == keys
    assert [event.done for event in done] == list(range(1, 7))
    assert done[-1].seconds_left == 0.0
    assert sorted(event.text for event in events if isinstance(event, Notice)) == sorted(
        "about {} {} {}".format(*key) for key in keys
    )
    assert [cell.key for cell in processes[0].in_order()] == keys
    by_others = {event.process for event in events if isinstance(event, CellBegan)}
    assert by_others > {0}  # not all by one


def test_features_are_computed_once_while_the_others_take_other_rows(in_threads: Any, tmp_path: Path) -> None:
    events, processes = divided(in_threads, tmp_path, ROWS, 3)
    assert len({event.cell.key for event in events if isinstance(event, CellDone)}) == 24
    assert processes[0].overlaps == []


def test_a_cell_waits_for_features_and_others_go_first(in_threads: Any) -> None:
    places = [(one, 4, 0) for one in (*ROWS[1:], ROWS[0])]

    def work(ranks: Any) -> list[str | None]:
        claims = Claims(ranks, list(places))
        if ranks.launch.is_first:
            taken = claims.next()
            assert taken is not None
            ranks.publish("taken", True)
            result_of(awaited(ranks, "tried"))
            claims.computed(taken[0])
            ranks.publish("computed", True)
            return [taken[0].name]
        result_of(awaited(ranks, "taken"))
        tried = [claims.next(), claims.next(), claims.next()]
        ranks.publish("tried", True)
        result_of(awaited(ranks, "computed"))
        tried += [claims.next(), claims.next()]
        return [None if place is None else place[0].name for place in tried]

    assert in_threads(2, work) == [["words"], ["elmo", "scratch", None, "both", None]]


def test_alone_the_cells_come_in_the_order_of_the_plan() -> None:
    claims = Claims(Alone(), [(one, 4, seed) for seed in (0, 1) for one in ROWS])
    taken = [claims.next() for _ in range(9)]
    assert [place and (place[0].name, place[2]) for place in taken] == [
        *((one.name, seed) for seed in (0, 1) for one in ROWS),
        None,
    ]


def test_a_stop_ends_another_process_within_its_cell(in_threads: Any, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()

    def work(ranks: Any) -> list[tuple[str, int, int]] | None:
        if ranks.launch.is_first:
            return result_of(awaited(ranks, "stopped"))  # it was killed: it never ends
        fitted: list[tuple[str, int, int]] = []
        cells = SleepingCells(tmp_path, ROWS, fitted)
        cells.naps = 10_000
        helping = help_with_cells(cells, [("scratch", 4, 0)], WORK, ranks)
        assert isinstance(next(helping), CellBegan)
        ranks.should_stop(True)
        with pytest.raises(EndedElsewhereError):
            result_of(helping)
        return fitted

    assert in_threads(2, work)[1] == []
    assert not list((tmp_path / "cells").iterdir())


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, Path]:
    for name in ("train", "dev"):
        lines = [
            f"The cat {'likes' if number % 2 else 'hates'} it {name} {number} .,{number % 2}" for number in range(20)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return {name: tmp_path / f"{name}.csv" for name in ("train", "dev")}


@pytest.mark.parametrize(
    ("differing", "says"),
    [
        ({"train": Path("none.csv")}, r"^Process 1, on machine 0: none\.csv"),
        ({"out": Path("elsewhere")}, r"^Process 1, on machine 0: .*elsewhere: is not the folder of the first process"),
        ({"seeds": 7}, r"^Process 1, on machine 0: .*'seeds' was"),
    ],
)
def test_a_mistake_of_another_process_is_raised_by_the_first(
    differing: dict[str, Any],
    says: str,
    in_threads: Any,
    examples: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_folder, "SIGHT_SECONDS", 0.1)
    monkeypatch.chdir(tmp_path)
    asked = {**examples, "rows": ["scratch"], "labels": (4,), "seeds": 200, "out": tmp_path / "out"}

    def work(ranks: Any) -> None:
        if ranks.launch.is_first:
            with pytest.raises(HeadstartError, match=says):
                list(compare(**asked, ranks=ranks))
            raise CheckpointError("and ends")
        with pytest.raises(EndedElsewhereError):
            list(compare(**{**asked, **differing}, ranks=ranks))

    with pytest.raises(CheckpointError, match="and ends"):
        in_threads(2, work)


def test_every_process_gets_the_results(in_threads: Any, examples: dict[str, Path], tmp_path: Path) -> None:
    quick = {"transfer.fitting": {"min_steps": 2, "epochs": 1.0}, "transfer.network.width": 4}
    asked = {**examples, "rows": ["scratch"], "labels": (4,), "seeds": 6, "settings": quick, "out": tmp_path / "out"}
    first, second = in_threads(2, lambda ranks: result_of(compare(**asked, ranks=ranks)))
    assert first == second
    assert [cell.seed for cell in first.cells] == [0, 1, 2, 3, 4, 5]
    assert not list((tmp_path / "out").glob("*.partial"))
