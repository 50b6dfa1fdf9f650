"""Jobs through worker processes, or through none; results come in the order of the jobs either way."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

import headstart
from headstart.errors import DataError
from headstart.text.frames import Frame, read_frame, write_frame
from headstart.text.jobs import Job, Work

WAITING_PER_WORKER = 3  # bounds the memory: so many jobs are read ahead or done and not yet fetched


def run_here(work: Work, jobs: Iterable[Job]) -> Generator[tuple[Job, Frame], None, None]:
    for job in jobs:
        yield job, work(job.texts)


def run_in_workers(order: Frame, jobs: Iterable[Job], workers: int) -> Generator[tuple[Job, Frame], None, None]:
    """`order` tells each worker what to do (see jobs.work_from). However this ends, no process is left behind."""
    processes: list[WorkerProcess] = []
    waiting: deque[tuple[Job, Future[Frame]]] = deque()
    threads = ThreadPoolExecutor(workers)
    try:
        idle: SimpleQueue[WorkerProcess] = SimpleQueue()
        for _ in range(workers):
            processes.append(WorkerProcess(order))
            idle.put(processes[-1])

        def run(texts: list[str]) -> Frame:
            process = idle.get()
            try:
                return process.run(texts)
            finally:
                idle.put(process)

        for job in jobs:
            waiting.append((job, threads.submit(run, job.texts)))
            if len(waiting) >= WAITING_PER_WORKER * workers:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        for _, future in waiting:
            future.cancel()
        for process in processes:
            process.stop()
        threads.shutdown()


class WorkerProcess:
    """One process that does one job after the other."""

    def __init__(self, order: Frame) -> None:
        # A pipe that nobody reads would block the worker once it is full. Closed in stop().
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115
        root = str(Path(headstart.__file__).parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
        # One process per core already; threads inside each would only take turns.
        quiet = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            # -P: a file in the user's folder must not stand in for a module of the worker.
            [sys.executable, "-P", "-m", "headstart.text.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            env={**os.environ, **quiet, "PYTHONPATH": path},
        )
        self._order: Frame | None = order

    def run(self, texts: list[str]) -> Frame:
        requests, answers = self._pipes()
        try:
            if self._order is not None:
                write_frame(requests, self._order)
                self._order = None
            write_frame(requests, Frame(texts=texts))
            answer = read_frame(answers)
        except (OSError, EOFError, ValueError) as error:
            raise self._died() from error
        if answer is None:
            raise self._died()
        if "error" in answer.header:
            raise DataError(answer.header["error"])
        return answer

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes():
            try:
                pipe.close()
            except OSError:  # what was still to be sent has no reader any more
                continue
        self._messages.close()

    def _pipes(self) -> tuple[BinaryIO, BinaryIO]:
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise RuntimeError("the worker was started without pipes")
        return requests, answers  # type: ignore[return-value]

    def _died(self) -> DataError:
        code = self._process.wait()
        self._messages.seek(0)
        said = self._messages.read().decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return DataError(
            f"A worker process that reads the text ended early ({how}{': ' + said if said else ''}). If the machine is "
            "short of memory, try again with one worker."
        )
