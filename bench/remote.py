"""A side in a process of its own, as its users would start it: our settings of the allocator do not reach it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from bench.measure import Timed

Build = Callable[..., Callable[[], float]]
"""Makes ready what is measured, and returns a pass of it, which gives the units it went through."""


class Remote:
    """Calling it has one pass done there, while this process waits without computing."""

    def __init__(self, build: Build, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there, build, *arguments), daemon=True)
        self.process.start()
        there.close()

    def __call__(self) -> Timed:
        self.pipe.send("go")
        units, seconds = self.pipe.recv()
        return Timed(units, seconds)


def serve(pipe: Connection, build: Build, *arguments: Any) -> None:
    one_pass = build(*arguments)
    while pipe.poll(None):
        try:
            pipe.recv()
        except EOFError:
            return
        began = time.perf_counter()
        units = one_pass()
        pipe.send((units, time.perf_counter() - began))
