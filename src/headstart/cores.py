"""Run independent pieces of work on all cores, one thread per core.

A matrix product that two cores share takes as long as the slower of them, and the operations between products are too
short to share at all. Work that falls into independent shares (parts of a batch, the two directions of an LSTM) is
therefore run by threads that each stay on one core. Python's global lock does not matter: torch and numpy release it
while they compute.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

ResultT = TypeVar("ResultT")


class _ThisThread(threading.local):
    alone = False
    torch_only = False


_this_thread = _ThisThread()


def alone() -> bool:
    """Whether this thread has a core to itself, so that its products should use numpy's BLAS.

    On one core that library is faster than torch's. It is slower where the threads of both compete for the same cores.
    """
    return _this_thread.alone and not _this_thread.torch_only


@contextmanager
def torch_products() -> Iterator[None]:
    """torch's products on every core, for weights whose memory is given back after each use (see `training.sharding`).

    torch cannot give back memory that numpy has seen.
    """
    before, _this_thread.torch_only = _this_thread.torch_only, True
    try:
        yield
    finally:
        _this_thread.torch_only = before


def on_cores(works: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """Call all of them, on as many cores as torch has threads, and return their results in order.

    Gradients are recorded in a share if they are recorded in the caller. A share that divides its own work runs it on
    its own thread, one after the other. A single share runs on the caller's thread and may use all cores. An error in a
    share is raised when all shares have ended.
    """
    with_gradient, cores = torch.is_grad_enabled(), torch.get_num_threads()
    products = torch_products if _this_thread.torch_only else nullcontext

    def share(work: Callable[[], ResultT]) -> ResultT:
        with torch.set_grad_enabled(with_gradient), products():  # torch keeps this setting per thread
            return work()

    if _this_thread.alone or (cores > 1 and len(works) == 1):
        return [work() for work in works]
    with one_thread_products():
        if cores == 1:
            return one_by_one(works)
        futures = [_team(os.getpid(), cores).submit(share, work) for work in works]
        wait(futures)
        return [future.result() for future in futures]


def one_by_one(works: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """With a single torch thread, the caller's own thread has its core to itself."""
    _this_thread.alone = True
    try:
        return [work() for work in works]
    finally:
        _this_thread.alone = False


@lru_cache(maxsize=1)
def _team(process: int, cores: int) -> ThreadPoolExecutor:
    """The threads. process: part of the key because threads do not survive a fork, so a child needs its own."""
    ready = threading.Barrier(cores + 1)

    def take_one_core() -> None:
        _this_thread.alone = True
        # A thread takes over the process's number of threads when it first asks for it. Ask now: later it would
        # overwrite the 1 that is set here.
        torch.get_num_threads()
        torch.set_num_threads(1)
        ready.wait()

    team = ThreadPoolExecutor(cores, thread_name_prefix="core", initializer=take_one_core)
    # The executor starts a thread only when there is work for it, and the barrier keeps any thread from taking two.
    for _ in range(cores):
        team.submit(int)
    ready.wait()
    # torch gives new threads the number that was set last, anywhere, which was the 1 above.
    torch.set_num_threads(cores)
    return team


class _Blas:
    """Limits numpy's BLAS to one thread while any team is at work. Its setting belongs to the whole process, so the
    first user changes it and the last one restores it."""

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
