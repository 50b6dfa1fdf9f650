"""The progress of claims: what is tested and what it costs, then a line for each part and each fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from headstart.claims.base import PartBegan
from headstart.claims.reproduce import ClaimBegan, ClaimDone, ClaimSkipped, ReproduceEvent
from headstart.cli.comparison_table import ComparedLines
from headstart.cli.progress_lines import Event
from headstart.cli.reproduce import minutes_text
from headstart.comparison.compare import CompareEvent
from headstart.comparison.events import Began
from headstart.report.wording import duration


@contextmanager
def watching(quiet: bool) -> Iterator[Callable[[ReproduceEvent], None]]:
    if quiet:
        yield lambda event: None
    else:
        yield ClaimLines(Console(stderr=True, highlight=False, soft_wrap=True))


class ClaimLines(ComparedLines):
    """A heading for each claim and each part of it; comparisons and pretrainings as their own commands show them."""

    def __call__(self, event: ReproduceEvent | CompareEvent | Event) -> None:
        if isinstance(event, ClaimBegan):
            self.say(f"\n{event.claim.number}. {event.claim.title} ({minutes_text(event.parts)})")
            for part in event.parts:
                self.say(f"   {part.title}: {minutes_text([part])}")
        elif isinstance(event, ClaimSkipped):
            self.say(f"Skipped: {event.why}")
        elif isinstance(event, ClaimDone):
            self.end_stage()
            if event.reused:
                self.say(f"{event.result.name}: was done before, in {duration(event.result.seconds)}.")
        elif isinstance(event, PartBegan):
            self.heading(event.title)
        else:
            super().__call__(event)

    def began(self, event: Began) -> None:
        """The part's heading has said it."""
        self.titles = {row.name: row.title for row in event.rows}
