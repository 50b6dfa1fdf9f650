"""Which processes of a job are gone: dead on this machine, or not heard of from another one.

Processes that exchange tensors notice it by that. Those that work side by side show that they are there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

from headstart.errors import HeadstartError, LostProcessError
from headstart.training.coordination import Every
from headstart.training.ranks import Ranks

BEAT_SECONDS = 5.0
SILENT_SECONDS = 120.0
"""After which a process of another machine counts as gone: a link that fails for a minute is waited for."""
CHECK_SECONDS = 1.0


@dataclass(slots=True)
class Watch:
    """What a process knows of those that it cannot do without: the first one of all others, the others of the first."""

    ranks: Ranks
    heard: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Of each process its last beat, and when that was new."""
    every: Every = field(default_factory=lambda: Every(CHECK_SECONDS))

    def poll(self) -> tuple[()]:
        """Raise LostProcessError if a process is gone. No events."""
        if self.every.is_due():
            self.raise_lost()
        return ()

    def raise_lost(self) -> None:
        launch = self.ranks.launch
        for rank in range(1, launch.world) if launch.is_first else [0]:
            machine, process = self.ranks.published(came(rank)) or (None, 0)
            if machine is None or self.ranks.published(left(rank)) is not None:
                continue
            if machine == launch.machine and not is_running(process):
                raise lost(f"Process {rank} has ended without a word: it was killed, or has failed.")
            if self._silent_seconds(rank) > SILENT_SECONDS:
                raise lost(f"Process {rank}, on machine {machine}, has not been heard of for {SILENT_SECONDS:.0f} s.")

    def _silent_seconds(self, rank: int) -> float:
        """By this process's clock alone."""
        beat, now = self.ranks.published(beats(rank)), time.monotonic()
        if rank not in self.heard or self.heard[rank][0] != beat:
            self.heard[rank] = beat, now
        return now - self.heard[rank][1]


@contextmanager
def present(ranks: Ranks) -> Iterator[Watch]:
    """Be seen by the other processes, until the end or an error that they are told of."""
    launch = ranks.launch
    if launch.world == 1:
        yield Watch(ranks)
        return
    leaving = threading.Event()

    def beat() -> None:
        with suppress(LostProcessError):  # told by the thread that works
            for number in count():
                ranks.publish(beats(launch.rank), number)
                if leaving.wait(BEAT_SECONDS):
                    return

    ranks.publish(came(launch.rank), [launch.machine, os.getpid()])
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield Watch(ranks)
    except (GeneratorExit, HeadstartError):
        with suppress(LostProcessError):
            ranks.publish(left(launch.rank), True)
        raise
    else:
        ranks.publish(left(launch.rank), True)
    finally:
        leaving.set()
        thread.join()


def lost(what: str) -> LostProcessError:
    return LostProcessError(
        f"{what} Nothing that was saved is lost: torchrun --max-restarts starts the processes again, or the same "
        "command goes on."
    )


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def came(rank: int) -> str:
    return f"came/{rank}"


def left(rank: int) -> str:
    return f"left/{rank}"


def beats(rank: int) -> str:
    return f"beats/{rank}"
