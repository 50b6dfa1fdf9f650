"""The progress of a comparison: a table that fills on a terminal, plain lines in a log, nothing when quiet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headstart.cli.progress_lines import Event, Lines, figures, fit_figures
from headstart.comparison.compare import CompareEvent
from headstart.comparison.events import Began, CellBegan, CellDone, Compared, MeanSoFar, RowPretraining
from headstart.comparison.rows import KINDS
from headstart.pretraining.loop import Step
from headstart.progress import Progress
from headstart.report.results import Baseline
from headstart.report.wording import duration, percent
from headstart.transfer.fitting import FitStep

REFRESHES_PER_SECOND = 4
SECONDS_BETWEEN_FIT_LINES = 60.0


class Watcher(Protocol):
    """Takes the events of a comparison as they come."""

    def __call__(self, event: CompareEvent) -> None: ...
    def stopped(self, text: str) -> None: ...


class Silent:
    def __call__(self, event: CompareEvent) -> None:
        pass

    def stopped(self, text: str) -> None:
        pass


@contextmanager
def watching(quiet: bool) -> Iterator[Watcher]:
    if quiet:
        yield Silent()
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield ComparedLines(console)
        return
    table = GrowingTable(console)
    with Live(get_renderable=table.render, console=console, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
        yield table


class ComparedLines(Lines):
    """One line for each cell, and one a minute where it takes longer; pretraining as `headstart pretrain` shows it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.titles: dict[str, str] = {}
        self.cell = ""
        self.last_fit = 0.0

    def __call__(self, event: CompareEvent | Event) -> None:
        if isinstance(event, Began):
            self.began(event)
        elif isinstance(event, RowPretraining):
            length = "" if event.seconds is None else f" for {duration(event.seconds)}"
            self.heading(f"Pretraining {KINDS[event.kind]}{length}")
        elif isinstance(event, CellBegan):
            self.cell_began(event)
        elif isinstance(event, FitStep):
            self.fit_step(event)
        elif isinstance(event, CellDone):
            self.cell_done(event)
        elif not isinstance(event, Compared):
            super().__call__(event)

    def stopped(self, text: str) -> None:
        self.say(text)

    def began(self, event: Began) -> None:
        self.titles = {row.name: row.title for row in event.rows}
        budgets = ", ".join(f"{labels:,}" for labels in event.labels)
        before = f"; {event.done} are done already" if event.done else ""
        seeds = "1 seed" if len(event.seeds) == 1 else f"{len(event.seeds)} seeds"
        self.say(f"{len(event.rows)} rows, {budgets} labelled examples, {seeds}: {event.cells} runs{before}.")
        for title in self.titles.values():
            self.say(f"  {title}")
        self.say(f"Baseline: {event.baseline.title}, {percent(event.baseline.score)}.")

    def cell_began(self, event: CellBegan) -> None:
        if event.process:
            return
        self.cell = f"{self.titles[event.row]}, {event.labels:,} labelled examples, seed {event.seed}"
        self.last_fit = time.monotonic()

    def fit_step(self, step: FitStep) -> None:
        if time.monotonic() - self.last_fit >= SECONDS_BETWEEN_FIT_LINES:
            self.last_fit = time.monotonic()
            self.say(f"{self.cell}: step {step.number:,} ({100 * step.progress:.0f} %), {fit_figures(step)}")

    def cell_done(self, event: CellDone) -> None:
        cell = event.cell
        collapsed = " (collapsed: the same answer for every example)" if cell.collapsed else ""
        self.say(
            f"{self.titles[cell.row]}, {cell.labels:,} labelled examples, seed {cell.seed}: "
            f"{percent(cell.score)}{collapsed} in {cell.seconds:.1f} s; "
            f"{event.done} of {event.total}, {time_left(event)}"
        )


def time_left(event: CellDone) -> str:
    return f"about {duration(event.seconds_left)} left" + ("" if event.all_tried else " for the rows tried so far")


class GrowingTable(ComparedLines):
    """Rows by numbers of labelled examples: the mean so far and its seeds; below the table, what is being done."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.labels: list[int] = []
        self.seeds = 0
        self.means: dict[tuple[str, int], str] = {}
        self.at: set[tuple[str, int, int]] = set()
        """The cells that are being fitted."""
        self.own: tuple[str, int, int] | None = None
        """The cell that this process fits."""
        self.status = ""
        self.left = ""
        self.baseline: Baseline | None = None

    def began(self, event: Began) -> None:
        self.titles = {row.name: row.title for row in event.rows}
        self.labels, self.seeds = event.labels, len(event.seeds)
        self.fill(event.table)
        self.baseline = event.baseline
        self.left = f"{event.done} of {event.cells} runs"

    def cell_began(self, event: CellBegan) -> None:
        self.at.add((event.row, event.labels, event.seed))
        super().cell_began(event)
        if not event.process:
            self.own, self.status = (event.row, event.labels, event.seed), self.cell

    def fit_step(self, step: FitStep) -> None:
        self.status = f"{self.status.partition(':')[0]}: {100 * step.progress:.0f} %, loss {step.loss:.3f}"

    def cell_done(self, event: CellDone) -> None:
        self.at.discard(event.cell.key)
        if event.cell.key == self.own:
            self.status = ""
        self.fill(event.table)
        self.left = f"{event.done} of {event.total} runs, {time_left(event)}"

    def progress(self, step: Step) -> None:
        self.status = f"pretraining: {100 * step.progress:.0f} %, {figures(step, self.unit)}"

    def reading(self, reading: Progress) -> None:
        share = f": {100 * reading.done / max(1, reading.total):.0f} %" if reading.unit else ""
        self.status = f"{reading.stage}{share}"

    def fill(self, table: list[MeanSoFar]) -> None:
        for entry in table:
            done = len(entry.scores)
            count = "" if done == self.seeds else f" ({done}/{self.seeds})"
            collapsed = f" {entry.collapsed} collapsed" if entry.collapsed else ""
            self.means[entry.row, entry.labels] = f"{percent(entry.mean)}{count}{collapsed}"

    def stopped(self, text: str) -> None:
        """Print the table once more, as the moving one disappears."""
        if self.means:
            self.console.print(self.table())
        self.say(text)

    def render(self) -> RenderableType:
        if not self.titles:
            return Text(self.status or "reading the examples")
        return Group(self.table(), Text(self.status), Text(self.left))

    def table(self) -> Table:
        table = Table()
        table.add_column("labelled examples")
        for labels in self.labels:
            table.add_column(f"{labels:,}", justify="right")
        if self.baseline is not None:
            table.add_row(Text(self.baseline.title), *(percent(self.baseline.score) for _ in self.labels))
        for name, title in self.titles.items():
            cells = [self.cell_text(name, labels) for labels in self.labels]
            table.add_row(Text(title), *cells)
        return table

    def cell_text(self, row: str, labels: int) -> Text:
        text = self.means.get((row, labels), "")
        return Text(f"{text} …" if any(cell[:2] == (row, labels) for cell in self.at) else text)
