"""Processes that share a job: how they wait for each other, and end together. The first one decides and speaks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

from headstart.errors import EndedElsewhereError, HeadstartError, LostProcessError
from headstart.progress import Progress
from headstart.training.ranks import ENDED, Ranks

EventT = TypeVar("EventT")
ResultT = TypeVar("ResultT")
POLL_SECONDS = 0.1
REFUSED = "refused"


class Every:
    """For what costs too much to be done at every event."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.last = -math.inf

    def is_due(self) -> bool:
        """Whether so many seconds have passed since this was last true."""
        now = time.monotonic()
        if now - self.last < self.seconds:
            return False
        self.last = now
        return True


def polling(
    events: Generator[EventT, None, ResultT], poll: Callable[[], Iterable[EventT]]
) -> Generator[EventT, None, ResultT]:
    """The events of a job and, every POLL_SECONDS between two of them, those that `poll` gives."""
    every = Every(POLL_SECONDS)
    with closing(events):
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                result: ResultT = end.value
                return result
            if every.is_due():
                yield from poll()
            yield event


def leading(ranks: Ranks, events: Generator[EventT, None, ResultT]) -> Generator[EventT, None, ResultT]:
    """The part of the first process: a mistake that another one has found is raised here, between two events."""

    def poll() -> Iterable[EventT]:
        raise_refusal(ranks)
        return ()

    return polling(events, poll)


def helping(
    ranks: Ranks, events: Generator[EventT, None, ResultT]
) -> Generator[EventT | Progress, None, ResultT | None]:
    """The part of any other process: it ends early, without a result, where the first one does.

    A mistake that is found here is raised by the first process, which speaks for all.
    """
    every = Every(POLL_SECONDS)
    try:
        with closing(events):
            while not (every.is_due() and ranks.ended()):
                try:
                    event = next(events)
                except StopIteration as end:
                    result: ResultT = end.value
                    return result
                yield event
    except (EndedElsewhereError, LostProcessError):
        raise
    except HeadstartError as error:
        refuse(ranks, error)
        yield from until_ended(ranks)
    return None


def refuse(ranks: Ranks, error: HeadstartError) -> None:
    """Let the first process raise what another one has found."""
    launch = ranks.launch
    ranks.publish(REFUSED, f"Process {launch.rank}, on machine {launch.machine}: {error}")


def raise_refusal(ranks: Ranks) -> None:
    """The mistake that another process has found, if one has."""
    refused = ranks.published(REFUSED)
    if refused is not None:
        raise HeadstartError(refused)


@contextmanager
def scope(ranks: Ranks, name: str) -> Iterator[Ranks]:
    """For the first process: one of several jobs, whose end the others see as that of `ranks.scoped(name)`."""
    inner, failed = ranks.scoped(name), True
    try:
        yield inner
        failed = False
    finally:
        with suppress(LostProcessError):
            inner.publish(ENDED, failed)


def awaited(ranks: Ranks, *keys: str) -> Generator[Progress, None, Any]:
    """What is published under the first of these keys, or None if the first process ends before that.

    Also None if a stop was asked for: a first process that was killed with the others never says that it has ended.
    """
    while True:
        for key in keys:
            value = ranks.published(key)
            if value is not None:
                return value
        if ranks.ended() or ranks.stopping():
            return None
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(POLL_SECONDS)


def until_ended(ranks: Ranks) -> Generator[Progress, None, None]:
    """Let the first process say what it has been told: it raises EndedElsewhereError when that has happened.

    A stop that was asked for ends it as well.
    """
    while not (ranks.ended() or ranks.stopping()):
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(POLL_SECONDS)
