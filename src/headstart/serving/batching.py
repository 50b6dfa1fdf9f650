"""Requests that wait are answered together: one thread computes, and takes with the oldest job all others of its kind.

One thread, because torch shares a computation among all cores by itself; two would take turns on them. A job that is
larger than a batch is computed in parts, and other jobs have their turn between them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Compute = Callable[[list[Any]], Sequence[Any]]
"""Items -> a result for each, in their order. A result that is an exception is what went wrong with its item."""


class OverloadError(Exception):
    """There is no room for another job, or the job waited too long. seconds: when to try again."""

    def __init__(self, sentence: str, seconds: int) -> None:
        super().__init__(sentence)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done with items. Items of one kind may be computed together; size: of an item, in characters."""

    kind: Hashable
    compute: Compute
    size: Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a batch: items, and characters unless a single item has more. waiting: items, of all jobs that wait."""

    items: int = 64
    characters: int = 40_000
    waiting: int = 512


@dataclass(slots=True)
class Job:
    """Some items of one request. answered: takes the results, or what went wrong; accept: raises where the results of
    some items are too much; abandoned: nobody waits any more."""

    work: Work
    items: list[Any]
    answered: Callable[[Sequence[Any] | BaseException], None]
    accept: Callable[[Sequence[Any]], None]
    abandoned: bool = False
    results: list[Any] = field(default_factory=list)
    """Of the items that were computed so far."""

    @property
    def left(self) -> int:
        """Items that are not computed yet."""
        return len(self.items) - len(self.results)

    def take(self, items: int, characters: int) -> list[Any]:
        """The next items that fit into what is left of a batch."""
        taken: list[Any] = []
        for item in self.items[len(self.results) :]:
            if len(taken) == items or characters <= 0:
                break
            taken.append(item)
            characters -= self.work.size(item)
        return taken


Share = tuple[Job, list[Any]]
"""A job with those of its items that a batch computes."""


class Batcher:
    """Answers jobs in the order in which they come, in a thread of its own, until it is closed."""

    def __init__(self, bounds: Bounds | None = None, watch: Callable[[int], None] = lambda items: None) -> None:
        """watch: told the number of items of every batch."""
        self.bounds = bounds or Bounds()
        self.watch = watch
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._answer_jobs, name="headstart-batcher", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Items that nobody computes yet, of jobs that somebody waits for."""
        return sum(job.left for job in list(self._jobs) if not job.abandoned)

    async def ask(
        self,
        work: Work,
        items: Sequence[Any],
        seconds: float,
        accept: Callable[[Sequence[Any]], None] = lambda results: None,
    ) -> list[Any]:
        """The results for some items; an OverloadError if there is no room to wait, or after so many seconds.

        accept: called with the results of every part; what it raises ends the job.
        """
        if not items:
            return []
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()

        def answered(found: Sequence[Any] | BaseException) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                loop.call_soon_threadsafe(settle, future, found)

        job = Job(work, list(items), answered, accept)
        self._add(job)
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            raise OverloadError(f"No answer within {seconds:g} seconds; the server has much to do.", 5) from None
        finally:
            job.abandoned = True

    def _add(self, job: Job) -> None:
        with self._changed:
            if self._closed:
                raise OverloadError("The server is stopping.", 5)
            if self._jobs and self.waiting + len(job.items) > self.bounds.waiting:
                raise OverloadError("Too many requests are waiting already.", 1)
            self._jobs.append(job)
            self._changed.notify()

    def close(self) -> None:
        """Answer what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _answer_jobs(self) -> None:
        while batch := self._next_batch():
            self.watch(sum(len(items) for _, items in batch))
            compute(batch)
            self._keep_unfinished(job for job, _ in batch)

    def _next_batch(self) -> list[Share]:
        """Of the oldest job and all others of its kind, what there is room for; nothing once the batcher is closed."""
        with self._changed:
            while True:
                self._jobs = deque(job for job in self._jobs if not job.abandoned)
                if self._jobs:
                    break
                if self._closed:
                    return []
                self._changed.wait()
            kind, batch, others = self._jobs[0].work.kind, list[Share](), deque[Job]()
            items, characters = self.bounds.items, self.bounds.characters
            for job in self._jobs:
                taken = job.take(items, characters) if job.work.kind == kind else []
                if not taken:
                    others.append(job)
                    continue
                batch.append((job, taken))
                items, characters = items - len(taken), characters - sum(map(job.work.size, taken))
            self._jobs = others
            return batch

    def _keep_unfinished(self, jobs: Iterable[Job]) -> None:
        """The rest of a large job waits behind those that came in the meantime."""
        with self._changed:
            self._jobs.extend(job for job in jobs if job.left and not job.abandoned)


def settle(future: asyncio.Future[list[Any]], found: Sequence[Any] | BaseException) -> None:
    if future.done():  # whoever asked has left
        return
    if isinstance(found, BaseException):
        future.set_exception(found)
    else:
        future.set_result(list(found))


def compute(batch: Sequence[Share]) -> None:
    """Compute all items at once. If that fails, job by job: what one client sent is no other's business."""
    items = [item for _, own in batch for item in own]
    try:
        found = batch[0][0].work.compute(items)
        if len(found) != len(items):
            raise RuntimeError(f"{len(items)} items got {len(found)} results")
    except BaseException as error:  # also what is no Exception: a panic in Rust must not end the thread
        if len(batch) > 1:
            for share in batch:
                compute([share])
        else:
            give_up(batch[0][0], error)
        return
    first = 0
    for job, own in batch:
        add_results(job, found[first : first + len(own)])
        first += len(own)


def add_results(job: Job, found: Sequence[Any]) -> None:
    failed = next((one for one in found if isinstance(one, BaseException)), None)
    try:
        if failed is not None:
            raise failed
        job.accept(found)
    except Exception as error:
        give_up(job, error)
        return
    job.results += found
    if not job.left:
        job.answered(job.results)


def give_up(job: Job, error: BaseException) -> None:
    job.abandoned = True
    # A future takes no StopIteration, and what is no Exception would pass all handlers of the application.
    passes = isinstance(error, Exception) and not isinstance(error, StopIteration)
    job.answered(error if passes else RuntimeError(f"{type(error).__name__} in a computation"))
