"""Requests that wait are answered together: one thread computes, and takes with the oldest job all others of its kind.

One thread, because torch shares a computation among all cores by itself; two would take turns on them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

Compute = Callable[[list[Any]], Sequence[Any]]
"""Items -> a result for each, in their order."""


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
    """Of a batch: items, and characters unless a single job has more. waiting: items, of all jobs that wait."""

    items: int = 64
    characters: int = 40_000
    waiting: int = 512


@dataclass(slots=True)
class Job:
    """Some items of one request. answered: takes the results, or what went wrong; abandoned: nobody waits any more."""

    work: Work
    items: list[Any]
    answered: Callable[[Sequence[Any] | BaseException], None]
    abandoned: bool = False


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
        """Items of the jobs that nobody computes yet."""
        return sum(len(job.items) for job in list(self._jobs))

    async def ask(self, work: Work, items: Sequence[Any], seconds: float) -> list[Any]:
        """The results for some items; an OverloadError if there is no room to wait, or after so many seconds."""
        if not items:
            return []
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()

        def answered(found: Sequence[Any] | BaseException) -> None:
            loop.call_soon_threadsafe(settle, future, found)

        job = Job(work, list(items), answered)
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
            self.watch(sum(len(job.items) for job in batch))
            answer(batch)

    def _next_batch(self) -> list[Job]:
        """The oldest job with all others of its kind that there is room for; nothing once the batcher is closed."""
        with self._changed:
            while True:
                self._jobs = deque(job for job in self._jobs if not job.abandoned)
                if self._jobs:
                    break
                if self._closed:
                    return []
                self._changed.wait()
            batch, left = [self._jobs.popleft()], deque[Job]()
            items, characters = len(batch[0].items), size_of(batch[0])
            for job in self._jobs:
                fits = items + len(job.items) <= self.bounds.items
                if job.work.kind != batch[0].work.kind or not fits or characters >= self.bounds.characters:
                    left.append(job)
                    continue
                batch.append(job)
                items, characters = items + len(job.items), characters + size_of(job)
            self._jobs = left
            return batch


def settle(future: asyncio.Future[list[Any]], found: Sequence[Any] | BaseException) -> None:
    if future.done():  # whoever asked has left
        return
    if isinstance(found, BaseException):
        future.set_exception(found)
    else:
        future.set_result(list(found))


def size_of(job: Job) -> int:
    return sum(map(job.work.size, job.items))


def answer(batch: Sequence[Job]) -> None:
    """Compute the items of all jobs at once. If that fails, one by one: what one client sent is no other's business."""
    items = [item for job in batch for item in job.items]
    try:
        found = batch[0].work.compute(items)
        if len(found) != len(items):
            raise RuntimeError(f"{len(items)} items got {len(found)} results")
    except Exception as error:
        if len(batch) == 1:
            batch[0].answered(error)
            return
        for job in batch:
            answer([job])
        return
    first = 0
    for job in batch:
        job.answered(found[first : first + len(job.items)])
        first += len(job.items)
