"""A full disk, a quota, a folder that may not be written, no temporary folder, HEADSTART_HOME on another file system:
every verb ends in one sentence, and what was there before is still there."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.faults import full, spoken
from bench.faults.jobs import JOBS, Inputs, Job
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import run_verb

NAME = "refused"
FEW_BYTES = (2_000, 5_000, 10_000, 20_000, 100_000, 1_000_000)
"""Largest files that may be written: a quota, met at different places."""
GROUPS = (*JOBS, spoken.GROUP)
QUICK, QUICK_CASES = ("export hf",), 2
CAPABILITIES = struct.pack("=II", 0x20080522, 0), bytes(24)
"""For capset(2): its version, this process, and none at all; root then has to keep to the modes of files."""
Prepare = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """A job, and the places that it writes to."""

    name: str
    inputs: Inputs
    folder: Path
    wanted: dict[str, str]
    """What the job leaves where there is room."""

    @property
    def job(self) -> Job:
        return JOBS[self.name]

    def command(self, out: str) -> list[str]:
        return self.job.command(self.inputs, self.folder / out)


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    if group == spoken.GROUP:
        yield from spoken.run(inputs, setting)
        return
    disks = full.cases() if not setting.quick or setting.only else {}
    kinds: dict[str, Callable[[Case], tuple[str, str]]] = {
        **{kind: partial(refused, prepare) for kind, prepare in REFUSALS.items()},
        **{kind: partial(full.on_a_small_disk, size, on) for kind, (size, on) in disks.items()},
    }
    before, alone = contents(inputs.folder), setting.folder / "alone"
    alone.mkdir()
    done = run_verb(JOBS[group].command(inputs, alone / "out"), alone / "home", alone)
    if done.code != 0:
        raise RuntimeError(f"with room: {done}")
    wanted = JOBS[group].left(alone / "out", alone / "home")
    for number in setting.numbers(group, len(kinds), QUICK_CASES):
        kind = list(kinds)[number]
        folder = setting.folder / str(number)
        folder.mkdir()
        how, wrong = kinds[kind](Case(group, inputs, folder, wanted))
        if not wrong and contents(inputs.folder) != before:
            wrong = "an input was changed"
        yield Outcome(NAME, group, number, how, f"{kind}: {wrong}" if wrong else "")


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(prepare: Callable[[Path], Prepare], case: Case) -> tuple[str, str]:
    """The job ends in a result or in a sentence; after that nothing half-written is left, and it works elsewhere."""
    folder = case.folder
    ended = run_verb(case.command("out"), folder / "home", folder, prepare(folder))
    how, wrong = ended.judged()
    if not wrong and how == "result" and case.job.left(folder / "out", folder / "home") != case.wanted:
        return how, "another result than with room"
    if wrong or how != "sentence":
        return how, wrong
    folder.chmod(0o777)
    if left := [path.name for path in folder.rglob("*.partial") if path.is_file()]:
        return how, f"left {left} behind"
    again = run_verb(case.command("out2"), folder / "home2", folder)
    works = again.code == 0 and case.job.left(folder / "out2", folder / "home2")
    return how, "" if works else f"and then it does not work: {again.errors[-200:]}"


def files_of_at_most(size: int, folder: Path) -> Prepare:
    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails, as with a quota
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return prepare


def not_writable(which: str, folder: Path) -> Prepare:
    """The folder of the result or of the cache may only be read."""
    place = folder / which
    place.mkdir()
    for name in ("stdout", "stderr"):
        (folder / name).touch()
    for path in (place, folder) if which == "out" else (place,):
        path.chmod(0o555)

    def prepare() -> None:
        if os.getuid() == 0 and ctypes.CDLL(None).capset(*CAPABILITIES):
            raise OSError("root cannot give up its rights here")

    return prepare


def no_temporary_folder(folder: Path) -> Prepare:
    def prepare() -> None:
        for name in ("TMPDIR", "TEMP", "TMP"):
            os.environ[name] = str(folder / "absent")
        tempfile.tempdir = str(folder / "absent")

    return prepare


REFUSALS: dict[str, Callable[[Path], Prepare]] = {
    **{f"files of at most {size:,} bytes": partial(files_of_at_most, size) for size in FEW_BYTES},
    "a folder for results that cannot be written": partial(not_writable, "out"),
    "a cache that cannot be written": partial(not_writable, "home"),
    "no temporary folder": no_temporary_folder,
}
