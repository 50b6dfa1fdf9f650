"""A full disk, a folder that may not be written, no temporary folder, HEADSTART_HOME on another file system: every verb
ends in one sentence, and what was there before is still there."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.faults.jobs import JOBS, Inputs, fingerprint
from bench.faults.outcome import Outcome, Setting
from bench.faults.verbs import run_verb

NAME = "refused"
FEW_BYTES = (2_000, 5_000, 10_000, 20_000, 100_000)
"""Largest files that may be written: what does not fit fails as on a full disk, at different places."""
QUICK = ("export hf", "transfer")
CAPABILITIES = struct.pack("=II", 0x20080522, 0), bytes(24)
"""For capset(2): its version, this process, and none at all; root then has to keep to the modes of files."""


def run(setting: Setting) -> Iterator[Outcome]:
    inputs = Inputs.made(setting.folder / "inputs")
    for name in JOBS:
        if not setting.wants(name) or (setting.quick and name not in QUICK and not setting.only):
            continue
        cases = dict(list(CASES.items())[:2]) if setting.quick else CASES
        for number, (case, prepare) in enumerate(cases.items()):
            if setting.wants(name, number):
                folder = setting.folder / f"{name.replace(' ', '-')}-{number}"
                yield Outcome(NAME, name, number, *refused(name, case, prepare, inputs, folder))


def refused(
    name: str, case: str, prepare: Callable[[Path], Callable[[], object]], inputs: Inputs, folder: Path
) -> tuple[str, str]:
    folder.mkdir()
    before = {path: path.read_bytes() for path in inputs.folder.rglob("*") if path.is_file()}
    ended = run_verb(JOBS[name].command(inputs, folder / "out"), folder / "home", folder, prepare(folder))
    how, wrong = ended.judged()
    if not wrong and before != {path: path.read_bytes() for path in inputs.folder.rglob("*") if path.is_file()}:
        wrong = "an input was changed"
    if not wrong and how == "sentence":
        partial_files = [path.name for path in folder.rglob("*") if ".partial" in path.name]
        wrong = f"left {partial_files} behind" if partial_files else ""
        folder.chmod(0o777)
        again = run_verb([*JOBS[name].command(inputs, folder / "out2")], folder / "home2", folder)
        wrong = wrong or ("" if again.code == 0 and fingerprint(folder / "out2") else "and then it does not work")
    return how, f"{case}: {wrong}" if wrong else ""


def files_of_at_most(size: int, folder: Path) -> Callable[[], object]:
    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return prepare


def not_writable(which: str, folder: Path) -> Callable[[], object]:
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


def no_temporary_folder(folder: Path) -> Callable[[], object]:
    def prepare() -> None:
        for name in ("TMPDIR", "TEMP", "TMP"):
            os.environ[name] = str(folder / "absent")
        tempfile.tempdir = str(folder / "absent")

    return prepare


def cache_on_another_file_system(folder: Path) -> Callable[[], object]:
    other = Path(tempfile.mkdtemp(prefix="faults-home-", dir="/var/tmp"))

    def prepare() -> None:
        os.environ["HEADSTART_HOME"] = str(other)

    return prepare


CASES: dict[str, Callable[[Path], Callable[[], object]]] = {
    **{f"files of at most {size:,} bytes": partial(files_of_at_most, size) for size in FEW_BYTES},
    "a folder for results that cannot be written": partial(not_writable, "out"),
    "a cache that cannot be written": partial(not_writable, "home"),
    "no temporary folder": no_temporary_folder,
    "a cache on another file system": cache_on_another_file_system,
}
