"""Processes that share a job: how they wait for each other, and end together. The first one decides and speaks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

import torch

from headstart.errors import EndedElsewhereError, HeadstartError, LostProcessError, StoppedElsewhereError
from headstart.progress import Progress
from headstart.training.ranks import ENDED, Ranks

EventT = TypeVar("EventT")
ResultT = TypeVar("ResultT")
POLL_SECONDS = 0.1
SHORTEST_POLL_SECONDS = 0.002
"""The first pause of a wait that may be short; each is twice as long as the one before."""
REFUSED = "refused"
STOPPED = "The first process was asked to stop."


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
    except StoppedElsewhereError:
        yield from until_ended(ranks)
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


def awaited(ranks: Ranks, *keys: str, in_step: bool = False) -> Generator[Progress, None, Any]:
    """What is published under the first of these keys, or None if the first process ends before that.

    Also None if a stop was asked for: a first process that was killed with the others never says that it has ended.
    in_step: but not then, because the first process may wait for this one in an exchange of tensors.
    """
    pause = SHORTEST_POLL_SECONDS
    while True:
        for key in keys:
            value = ranks.published(key)
            if value is not None:
                return value
        if ranks.ended() or (not in_step and ranks.stopping()):
            return None
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(pause)
        pause = min(2 * pause, POLL_SECONDS)


def told(ranks: Ranks, key: str) -> Generator[Progress, None, Any]:
    """What the first process publishes under this key; StoppedElsewhereError if it is stopped before that."""
    value = yield from awaited(ranks, key, in_step=True)
    if value is None:
        raise StoppedElsewhereError(STOPPED)
    return value


def come_to(ranks: Ranks, place: str) -> None:
    """For any process but the first: say that it has come so far."""
    ranks.publish(f"{place}/{ranks.launch.rank}", True)


def wait_for_others(ranks: Ranks, place: str) -> Generator[Progress, None, None]:
    """For the first process: until all others have come so far. A mistake that one of them has found is raised here."""
    others = range(1, ranks.launch.world)
    for rank in others:
        while ranks.published(f"{place}/{rank}") is None:
            raise_refusal(ranks)
            yield Progress("waiting for the other processes", rank - 1, len(others), "processes")
            time.sleep(POLL_SECONDS)


def meet_at(ranks: Ranks, place: str) -> Generator[Progress, None, None]:
    """Wait until all processes have come so far: who waits in an exchange of tensors cannot be told of a mistake."""
    if ranks.launch.is_first:
        yield from wait_for_others(ranks, place)
        ranks.publish(place, True)
    else:
        come_to(ranks, place)
        yield from told(ranks, place)


def between_exchanges(ranks: Ranks, event: EventT) -> Generator[EventT, None, None]:
    """Yield an event that all processes have between two exchanges of tensors.

    Where the first process is closed at it, the others raise StoppedElsewhereError: they would wait for it in vain.
    """
    if ranks.launch.world == 1:
        yield event
        return
    goes_on = torch.ones(())
    try:
        yield event
    except GeneratorExit:
        if ranks.launch.is_first:
            ranks.share_([goes_on.zero_()])
        raise
    ranks.share_([goes_on])
    if not goes_on:
        raise StoppedElsewhereError(STOPPED)


def until_ended(ranks: Ranks) -> Generator[Progress, None, None]:
    """Let the first process say what it has been told: it raises EndedElsewhereError when that has happened.

    A stop that was asked for ends it as well.
    """
    while not (ranks.ended() or ranks.stopping()):
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(POLL_SECONDS)
