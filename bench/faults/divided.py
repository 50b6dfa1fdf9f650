"""Groups of cases, each in a process of its own, some at a time: one that breaks does not end the campaign."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import IO

from bench.faults.child import how_it_died, place_of
from bench.faults.outcome import Outcome, Setting

Run = Callable[[str, Setting], Iterator[Outcome]]
BROKEN = "broken"
"""How a group ends that could not be finished."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A process at work on a group, and the outcomes that it sends, a line each."""

    row: str
    group: str
    process: int
    lines: IO[bytes]

    def next(self) -> Outcome | None:
        """None at the end."""
        line = self.lines.readline()
        return Outcome(**json.loads(line)) if line.endswith(b"\n") else None

    def end(self) -> Iterator[Outcome]:
        """An outcome that is wrong, if the process did not come to its end."""
        self.lines.close()
        died = how_it_died(self.process)
        if not died.endswith("with 0"):
            yield Outcome(self.row, self.group, -1, BROKEN, died)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)


def outcomes_of_groups(row: str, run: Run, groups: Sequence[str], setting: Setting, jobs: int) -> Iterator[Outcome]:
    """The outcomes of all groups, as they come. jobs: groups at a time, each with a folder of its own."""
    waiting, at_work = list(groups), dict[int, Worker]()
    try:
        while waiting or at_work:
            while waiting and len(at_work) < jobs:
                number = len(groups) - len(waiting)
                folder = setting.folder / f"{row}-{number}"
                folder.mkdir()
                worker = started(row, run, waiting.pop(0), replace(setting, folder=folder))
                at_work[worker.lines.fileno()] = worker
            for ready in select.select(list(at_work), [], [])[0]:
                outcome = at_work[ready].next()
                if outcome is not None:
                    yield outcome
                else:
                    yield from at_work.pop(ready).end()
    finally:
        for worker in at_work.values():
            worker.stop()


def started(row: str, run: Run, group: str, setting: Setting) -> Worker:
    receiving, sending = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(receiving)
        work(row, run, group, setting, sending)
    os.close(sending)
    # Unbuffered: of several lines that came at once, select would not see those in a buffer.
    return Worker(row, group, process, os.fdopen(receiving, "rb", buffering=0))


def work(row: str, run: Run, group: str, setting: Setting, sending: int) -> None:
    """The child: never returns."""
    code = 1
    try:
        with os.fdopen(sending, "w", buffering=1) as lines:
            try:
                for outcome in run(group, setting):
                    lines.write(json.dumps(asdict(outcome)) + "\n")
            except Exception as error:
                wrong = f"{type(error).__name__}: {error} ({place_of(error)})"
                lines.write(json.dumps(asdict(Outcome(row, group, -1, BROKEN, wrong))) + "\n")
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)
