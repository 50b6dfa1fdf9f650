"""Ctrl-C and SIGTERM ask a job to stop at its next event; a second one stops it at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headstart.training.ranks import Ranks


class StopRequest:
    """Ctrl-C (or SIGTERM) once asks for a stop between two steps; twice interrupts at once.

    ranks: the processes that share the job, if there are several. The first one stops, and the others with it.
    """

    asked = False

    def __init__(self, ranks: Ranks | None = None) -> None:
        from headstart.training.coordination import POLL_SECONDS, Every

        self.ranks, self.every = ranks, Every(POLL_SECONDS)

    def ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def is_due(self) -> bool:
        """Whether this process should stop now."""
        if self.ranks is None:
            return self.asked
        return self.every.is_due() and self.ranks.should_stop(self.asked)


@contextmanager
def stop_requests(ranks: Ranks | None = None) -> Iterator[StopRequest]:
    request = StopRequest(ranks)
    before = {number: signal.signal(number, request.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
