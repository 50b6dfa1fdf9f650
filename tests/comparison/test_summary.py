from __future__ import annotations

import pytest

from headstart.comparison.events import MeanSoFar
from headstart.comparison.summary import seconds_left, table_so_far
from headstart.report.results import Cell


def cell(row: str, labels: int, accuracy: float, seconds: float, *, collapsed: bool = False) -> Cell:
    return Cell(
        row=row, labels=labels, seed=0, metric="accuracy", scores={"accuracy": accuracy}, seconds=seconds, steps=1,
        best_step=1, collapsed=collapsed, mix={}, parameters=1, truncated=0,
    )  # fmt: skip


def test_means_of_the_seeds_done() -> None:
    cells = [cell("a", 50, 0.5, 1, collapsed=True), cell("b", 50, 0.75, 1), cell("a", 50, 1.0, 1)]
    assert table_so_far(cells) == [MeanSoFar("a", 50, 0.75, [0.5, 1.0], 1), MeanSoFar("b", 50, 0.75, [0.75], 0)]


def test_a_cell_takes_as_long_as_those_most_like_it() -> None:
    done = [cell("a", 50, 0.5, 2.0), cell("a", 50, 0.5, 4.0), cell("a", 200, 0.5, 10.0), cell("b", 50, 0.5, 8.0)]
    assert seconds_left(done, [("a", 50), ("a", 1000), ("b", 200)]) == pytest.approx(3.0 + 10.0 + 8.0)
    assert seconds_left(done, [("c", 50), ("b", 200)]) == pytest.approx(8.0)
    assert seconds_left(done, []) == 0.0
    assert seconds_left(done, [("a", 50), ("b", 200)], processes=2) == pytest.approx(5.5)
    assert seconds_left(done, [("b", 200)], processes=2) == pytest.approx(8.0)
