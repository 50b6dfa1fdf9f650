"""Lines in a log: few, but none that leaves a stage unfinished."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from headstart.cli import progress_lines
from headstart.cli.progress_lines import Lines, display, reading_figures
from headstart.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_lines, "time", clock)
    return clock


def lines_of(events: list[tuple[float, Progress]], clock: Clock) -> list[str]:
    out = io.StringIO()
    show = Lines(Console(file=out, width=200))
    for seconds, event in events:
        clock.now += seconds
        show(event)
    show.end_stage()
    return out.getvalue().splitlines()


def test_lines_come_every_ten_seconds_and_at_the_end_of_a_stage(clock: Clock) -> None:
    counting = [(1.0, Progress("counting", done, 25, "words")) for done in range(1, 26)]
    writing = [(1.0, Progress("writing", done, 3, "words")) for done in range(1, 4)]
    shown = lines_of(counting + writing, clock)
    assert [line.partition(":")[0] for line in shown] == [
        "counting (44 %)",
        "counting (84 %)",
        "counting (100 %)",
    ], "a stage of three seconds is not worth a line; one that was shown is shown to its end"


def test_rates_are_in_the_unit_of_the_stage() -> None:
    assert reading_figures(Progress("learning spelling", 300, 1_200, "steps"), 3.0) == "100 steps/s, 9 s left"
    assert reading_figures(Progress("reading", 6_000_000, 12_000_000), 2.0) == "3.0 MB/s, 2 s left"
    assert reading_figures(Progress("merging", 5, 0, "parts"), 1.0) == "5 parts/s, 5 so far"
    assert reading_figures(Progress("waiting for the other processes", 0, 0, ""), 12.0) == "12 s so far"


def test_what_is_printed_beside_a_bar_goes_where_the_output_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bar is on the terminal; results that are printed meanwhile may be for a file."""
    terminal = io.StringIO()
    monkeypatch.setattr(progress_lines, "Console", lambda **_: Console(file=terminal, force_terminal=True, width=200))
    with display(quiet=False) as show:
        show(Progress("scoring", 1, 2, "lines"))
        print("a score")
    assert "scoring" in terminal.getvalue()
    assert capsys.readouterr().out == "a score\n"
