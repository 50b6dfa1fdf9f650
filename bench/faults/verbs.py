"""Commands of Headstart in forked processes, which saves each the seconds that importing torch takes."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.faults.child import what_is_wrong
from headstart.cli import main

RESULT, SENTENCE = "result", "sentence"
MISTAKE = 2
SPOKEN = "headstart: "
NOT_FLUSHED = 120
"""What Python exits with if it cannot write the last of the output."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. code: its exit code, negative for a signal; None if it was not done in time."""

    code: int | None
    out: str
    errors: str

    def judged(self) -> tuple[str, str]:
        """(how it ended, what was wrong with that): a result, or exit code 2 with one sentence, is as wanted."""
        if self.code is None:
            return "hang", f"not done in time: {self.errors[-300:]}"
        if self.code < 0:
            return "crash", f"ended by {signal.Signals(-self.code).name}: {self.errors[-300:]}"
        if self.code == 0:
            return RESULT, ""
        said = [line for line in self.errors.splitlines() if line.startswith(SPOKEN)]
        if self.code != MISTAKE or "Traceback" in self.errors or len(said) != 1:
            return "traceback", f"exit code {self.code}: {self.errors[-300:]}"
        return SENTENCE, what_is_wrong(said[0])


class Command:
    """A command at work in a process of its own. prepare: is called there first, such as to set limits."""

    def __init__(
        self, arguments: Sequence[str], home: Path, folder: Path, prepare: Callable[[], object] | None = None
    ) -> None:
        self.out, self.errors = folder / "stdout", folder / "stderr"
        for path in (self.out, self.errors):
            path.touch()
        sys.stdout.flush()
        self.process = os.fork()
        if self.process == 0:
            self._work(arguments, home, prepare)
        with suppress(PermissionError, ProcessLookupError):  # the child has done so, or has ended
            os.setpgid(self.process, self.process)

    def _work(self, arguments: Sequence[str], home: Path, prepare: Callable[[], object] | None) -> None:
        """The child: never returns."""
        code = 1
        try:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, path in ((1, self.out), (2, self.errors)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            os.environ["HEADSTART_HOME"] = str(home)
            sys.argv = ["headstart", *arguments]
            if prepare is not None:
                prepare()
            main.run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            except OSError:
                code = NOT_FLUSHED
            finally:
                os._exit(code)

    def kill_after(self, seconds: float) -> bool:
        """SIGKILL after this time, to it and to the processes it has started. Whether it was still at work."""
        ended = self.wait(seconds)
        return ended.code is None

    def wait(self, seconds: float) -> Ended:
        """Its end; a process that is not done by then is killed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                return self._ended(os.waitstatus_to_exitcode(status))
            time.sleep(0.002)
        os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        return self._ended(None)

    def _ended(self, code: int | None) -> Ended:
        return Ended(code, *(path.read_text("utf-8", "replace") for path in (self.out, self.errors)))


def run_verb(
    arguments: Sequence[str],
    home: Path,
    folder: Path,
    prepare: Callable[[], object] | None = None,
    seconds: float = 120.0,
) -> Ended:
    return Command(arguments, home, folder, prepare).wait(seconds)


@contextmanager
def at_work(commands: Sequence[Command]) -> Iterator[None]:
    try:
        yield
    finally:
        for command in commands:
            command.wait(0)
