"""Cases in a child process: one that hangs, crashes or takes too much memory ends the child and not the campaign."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from headstart.errors import HeadstartError

SECONDS = 20.0
MEMORY = 2 << 30
LONGEST_SENTENCE = 2_000
RESULT, SENTENCE = "result", "sentence"
RUNS_CODE = frozenset({"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class"})
"""Audit events of code that a file should never cause to run."""


class ExecutedError(BaseException):
    """A file made the interpreter run something; not an Exception, so that no reader can catch it."""


def outcomes_of(
    read: Callable[[int], object],
    numbers: Sequence[int],
    warm_up: Callable[[], object] | None = None,
    seconds: float = SECONDS,
    memory: int = MEMORY,
) -> Iterator[tuple[int, str, str]]:
    """(number, how it ended, what was wrong with that) of every case, in order.

    read: does the case of a number; a result or a HeadstartError of one sentence is as wanted. Those that follow a case
    which ended the child are done in a new one. warm_up: imports what reading needs; after it, a case may run no code.
    """
    left = list(numbers)
    while left:
        for number, ended, wrong in of_one_child(read, list(left), warm_up, seconds, memory):
            yield number, ended, wrong
            left.remove(number)


def of_one_child(
    read: Callable[[int], object],
    numbers: Sequence[int],
    warm_up: Callable[[], object] | None,
    seconds: float,
    memory: int,
) -> Iterator[tuple[int, str, str]]:
    receiving, sending = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(receiving)
        work_through(read, numbers, warm_up, memory, os.fdopen(sending, "w", buffering=1))
    os.close(sending)
    waiting = iter(numbers)
    try:
        with os.fdopen(receiving, "rb", buffering=0) as lines:
            for number in waiting:
                line = next_line(lines, seconds)
                if line is None:
                    yield number, "hang", f"not done after {seconds:.0f} s"
                    return
                if not line:
                    yield number, "crash", how_it_died(process)
                    return
                yield number, *json.loads(line)
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(process, 0)


def next_line(lines: IO[bytes], seconds: float) -> bytes | None:
    """The next line of a pipe, b"" at its end, or None if it does not come in time."""
    line, until = b"", time.monotonic() + seconds
    while not line.endswith(b"\n"):
        if not select.select([lines], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        some = lines.read(1)
        if not some:
            return b""
        line += some
    return line


def how_it_died(process: int) -> str:
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return f"the process ended by {signal.Signals(-code).name}" if code < 0 else f"the process ended with {code}"


def work_through(
    read: Callable[[int], object],
    numbers: Sequence[int],
    warm_up: Callable[[], object] | None,
    memory: int,
    answers: IO[str],
) -> None:
    """The child: never returns."""
    os.setsid()
    with open(os.devnull, "w") as nowhere:  # libraries print to stderr about damaged files
        os.dup2(nowhere.fileno(), 2)
        if warm_up is not None:
            warm_up()
            sys.addaudithook(lambda event, _: refuse(event))
        limit_memory(memory)
        for number in numbers:
            ended, wrong = judged(read, number)
            answers.write(json.dumps([ended, wrong]) + "\n")
    os._exit(0)


def limit_memory(memory: int) -> None:
    """So many bytes beyond what the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def refuse(event: str) -> None:
    if event in RUNS_CODE:
        raise ExecutedError(event)


def judged(read: Callable[[int], object], number: int) -> tuple[str, str]:
    """(how a case ended, what was wrong with that)."""
    try:
        read(number)
    except HeadstartError as error:
        return SENTENCE, what_is_wrong(str(error))
    except ExecutedError as event:
        return "executed", f"ran code: {event}"
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {error} ({place_of(error)})"
    return RESULT, ""


def what_is_wrong(sentence: str) -> str:
    """A sentence that is not one: with line breaks or control characters, endless, or none at all."""
    if not sentence.strip():
        return "an error without a word"
    if len(sentence) > LONGEST_SENTENCE:
        return f"a message of {len(sentence):,} characters: {sentence[:80]}"
    strange = next((character for character in sentence if not character.isprintable()), None)
    return "" if strange is None else f"the message holds {strange!r}: {sentence[:200]!r}"


def place_of(error: BaseException) -> str:
    """The last line of the product's own that an error came through."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "headstart" in name or not place:
            place = f"{Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
