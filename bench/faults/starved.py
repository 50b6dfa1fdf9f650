"""Little memory: every verb under limits of its address space ends in a result, or in a sentence with what to lower."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.faults.child import limit_memory
from bench.faults.hub import ENTRY
from bench.faults.jobs import JOBS, Inputs
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import run_verb

NAME = "starved"
GROUPS = tuple(JOBS)
QUICK, QUICK_SIZES = ("export hf",), 2
BEYOND = (2_048, 1_024, 512, 256, 128)
"""Megabytes beyond what the process has with its libraries loaded: the job itself then is short of memory. With less,
OpenBLAS and the tokenizers library end the process themselves."""
IN_ALL = (2_048, 1_536, 1_024, 768, 512)
"""Megabytes of a process that is started anew, libraries and all, as after `ulimit -v`."""

WITH_ENTRY = "from bench.faults.hub import list_entry; list_entry(); from headstart.cli.main import run; run()"
"""Headstart with the campaign's entry in its catalogue."""


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    sizes = [*((size, False) for size in BEYOND), *((size, True) for size in IN_ALL)]
    for number in setting.numbers(group, len(sizes), QUICK_SIZES):
        folder = setting.folder / str(number)
        folder.mkdir()
        size, in_all = sizes[number]
        command = JOBS[group].command(inputs, folder / "out")
        ended = run_verb(command, folder / "home", folder, limit_of(size, command) if in_all else beyond(size))
        how, wrong = ended.judged()
        if not wrong and how == "sentence" and "memory" not in ended.errors:
            wrong = f"does not speak of memory: {ended.errors[-200:]}"
        said = f"{size} MB{' in all' if in_all else ''}: {wrong}"
        yield Outcome(NAME, group, number, how, said if wrong else "")


def beyond(size: int) -> Callable[[], object]:
    return partial(limit_memory, size << 20)


def limit_of(size: int, command: Sequence[str]) -> Callable[[], object]:
    """In the child: become a new process with this limit."""
    started = ["-c", WITH_ENTRY] if ENTRY in command else ["-m", "headstart"]
    shell = ["sh", "-c", 'ulimit -v "$0"; exec "$@"', str(size << 10), sys.executable, *started, *command]
    return lambda: os.execvp("sh", shell)
