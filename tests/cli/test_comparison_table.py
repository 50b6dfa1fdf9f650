from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from headstart.cli import comparison_table
from headstart.cli.compare import saved_lines
from headstart.cli.comparison_table import ComparedLines, GrowingTable
from headstart.comparison.events import Began, CellBegan, CellDone, MeanSoFar
from headstart.comparison.rows import Row, RowEncoder
from headstart.progress import Progress
from headstart.report.results import Baseline, Cell, LabelsSaved
from headstart.transfer.fitting import FitStep

ROWS = [
    Row("scratch", "Scratch", "scratch", "scratch", "finetune", None),
    Row("elmo-frozen", "ELMo, frozen", "elmo-frozen", "elmo", "frozen", RowEncoder("elmo", Path("runs/e"))),
]
BEGAN = Began(ROWS, [50, 1000], [0, 1], 8, 1, [MeanSoFar("scratch", 50, 1.0, [1.0], 0)], Baseline("Always 'no'", 1.0))
CELL = Cell(
    row="elmo-frozen", labels=50, seed=1, metric="accuracy", scores={"accuracy": 1.0}, seconds=2.0, steps=4,
    best_step=4, collapsed=True, mix={}, parameters=9, truncated=0,
)  # fmt: skip
DONE = CellDone(CELL, [MeanSoFar("elmo-frozen", 50, 1.0, [1.0, 1.0], 1)], 2, 8, 12.0, all_tried=False)


def test_a_log_has_the_baseline_and_a_line_for_each_cell() -> None:
    out = io.StringIO()
    lines = ComparedLines(Console(file=out, width=200))
    lines(BEGAN)
    lines(DONE)
    assert "2 rows, 50, 1,000 labelled examples, 2 seeds: 8 runs; 1 are done already." in out.getvalue()
    assert "Baseline: Always 'no', 100.0 %." in out.getvalue()
    assert (
        "ELMo, frozen, 50 labelled examples, seed 1: 100.0 % (collapsed: the same answer for every example) in 2.0 s; "
        "2 of 8, about 12 s left for the rows tried so far" in out.getvalue()
    )


def test_a_log_says_how_far_a_long_fit_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(comparison_table.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    lines = ComparedLines(Console(file=out, width=200))
    lines(BEGAN)
    lines(CellBegan("elmo-frozen", 50, 1))
    for number in range(1, 131):
        now[0] += 1.0
        lines(FitStep(number, 200, 0.5, number / 200, 1.0, 200.0 - number, None))
    assert [line for line in out.getvalue().splitlines() if "step" in line] == [
        "ELMo, frozen, 50 labelled examples, seed 1: step 60 (30 %), loss 0.500, 1.0 steps/s, 2 min 20 s left at most",
        "ELMo, frozen, 50 labelled examples, seed 1: step 120 (60 %), loss 0.500, 1.0 steps/s, 1 min 20 s left at most",
    ]


def test_the_table_grows_and_its_columns_stay_apart() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    table = GrowingTable(console)
    table(BEGAN)
    table(CellBegan("elmo-frozen", 50, 1))
    console.print(table.render())
    assert "ELMo, frozen, 50 labelled examples, seed 1" in out.getvalue()
    table(DONE)
    console.print(table.render())
    shown = [" ".join(line.replace("│", "|").split()) for line in out.getvalue().splitlines()]
    assert "| Always 'no' | 100.0 % | 100.0 % |" in shown
    assert "| Scratch | 100.0 % (1/2) | |" in shown
    assert "| ELMo, frozen | 100.0 % 1 collapsed | |" in shown
    assert "2 of 8 runs, about 12 s left for the rows tried so far" in shown


def test_fits_of_other_processes_are_marked_and_leave_the_line_below_alone() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    table = GrowingTable(console)
    for event in (BEGAN, CellBegan("scratch", 1000, 0), CellBegan("elmo-frozen", 50, 1, process=1)):
        table(event)
    console.print(table.render())
    assert out.getvalue().count("…") == 2
    table(DONE)
    console.print(table.render())
    assert out.getvalue().count("…") == 3
    assert out.getvalue().count("Scratch, 1,000 labelled examples, seed 0") == 2
    table(Progress("waiting for the other processes", 0, 0, ""))
    console.print(table.render())
    assert out.getvalue().splitlines()[-2].strip() == "waiting for the other processes"


def test_what_more_examples_do_is_not_told_once_fewer_beat_scratch_with_the_most() -> None:
    elmo = [LabelsSaved("elmo", n, equals, f"ELMo {n}") for n, equals in ((50, 158), (200, None), (1000, None))]
    bert = [LabelsSaved("bert", n, equals, f"BERT {n}") for n, equals in ((50, 50), (200, 300), (1000, 1000))]
    assert saved_lines([*elmo, *bert]) == ["ELMo 50", "ELMo 200", "BERT 50", "BERT 200", "BERT 1000"]
