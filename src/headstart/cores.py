"""All cores at once: a thread for each, which computes alone on its own share of the work.

A product that two cores share ends when the slower is done, and what lies between products is too short to be shared at
all. Work that falls into independent shares (the halves of a batch, the two directions of an LSTM) is therefore done by
threads that each keep to one core. Python's lock is no hindrance: torch and numpy let go of it while they compute.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

ResultT = TypeVar("ResultT")


class _Here(threading.local):
    alone = False


_here = _Here()


def alone() -> bool:
    """Whether this thread has one core and other threads have the others: its products should use numpy's BLAS.

    That library is quicker than torch's on one core, and slower where both keep threads waiting for the same cores.
    """
    return _here.alone


def on_cores(works: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """Call all of them, on as many cores as torch has threads, and give their results in order.

    Gradients are recorded in a share only if they are where it was asked for. Shares of a share are done one by one,
    and so is a single one, which then may use all cores itself. An error is raised when all have ended.
    """
    with_gradient, cores = torch.is_grad_enabled(), torch.get_num_threads()

    def share(work: Callable[[], ResultT]) -> ResultT:
        with torch.set_grad_enabled(with_gradient):
            return work()

    if _here.alone or (cores > 1 and len(works) == 1):
        return [work() for work in works]
    with one_thread_products():
        if cores == 1:
            return one_by_one(works)
        futures = [_team(os.getpid(), cores).submit(share, work) for work in works]
        wait(futures)
        return [future.result() for future in futures]


def one_by_one(works: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """Where torch is given a single thread, this one has its core to itself."""
    _here.alone = True
    try:
        return [work() for work in works]
    finally:
        _here.alone = False


@lru_cache(maxsize=1)
def _team(process: int, cores: int) -> ThreadPoolExecutor:
    """process: threads do not survive a fork, so a child has its own team."""
    ready = threading.Barrier(cores + 1)

    def keep_to_one_core() -> None:
        _here.alone = True
        torch.get_num_threads()  # torch gives a thread the common number when it first asks, and would do so later
        torch.set_num_threads(1)
        ready.wait()

    team = ThreadPoolExecutor(cores, thread_name_prefix="core", initializer=keep_to_one_core)
    for _ in range(cores):
        team.submit(int)
    ready.wait()
    torch.set_num_threads(cores)  # torch gives every later thread the number that was set last
    return team


class _Blas:
    """Numpy's BLAS, whose number of threads is one for the whole process while any team is at work."""

    def __init__(self) -> None:
        self.libraries = ThreadpoolController().select(user_api="blas")
        self.lock = threading.Lock()
        self.users = 0
        self.before: list[int] = []

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                self.before = [library.num_threads for library in self.libraries.lib_controllers]
                for library in self.libraries.lib_controllers:
                    library.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                for library, threads in zip(self.libraries.lib_controllers, self.before, strict=True):
                    library.set_num_threads(threads)


_blas = lru_cache(maxsize=1)(_Blas)


@contextmanager
def one_thread_products() -> Iterator[None]:
    _blas().enter()
    try:
        yield
    finally:
        _blas().leave()
