"""Ctrl-C and SIGTERM ask a job to stop at its next event; a second one stops it at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Ctrl-C (or SIGTERM) once asks for a stop between two steps; twice interrupts at once."""

    asked = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    request = StopRequest()
    before = {number: signal.signal(number, request.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
