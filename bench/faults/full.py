"""File systems in memory that are too small for a job's result, its cache, or both; mounted where that is allowed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.faults.jobs import differing
from bench.faults.verbs import run_verb

if TYPE_CHECKING:
    from bench.faults.refused import Case

# From <sched.h> and <sys/mount.h>.
CLONE_NEWNS, MS_REMOUNT, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 32, 0x4000, 0x40000, 2
SIZES = ("32k", "128k", "512k", "2m")
LARGE = "256m"
RESULT, CACHE = "out", "home"
ON = {"the result": (RESULT,), "the cache": (CACHE,), "both": (RESULT, CACHE)}


def cases() -> dict[str, tuple[str, tuple[str, ...]]]:
    """By name: the size of the disk, and what is on it. Empty, with the reason told, where nothing may be mounted."""
    if reason := why_not():
        print(f"refused: full disks are left out, because nothing can be mounted here ({reason}).", flush=True)
        return {}
    small = {f"a disk of {size} with {what}": (size, on) for what, on in ON.items() for size in SIZES}
    return small | {"a cache on another file system": (LARGE, ON["the cache"])}


def why_not() -> str:
    """Give this process mounts of its own, which end with it; why that failed, or ""."""
    try:
        called("unshare", CLONE_NEWNS)
        called("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def called(name: str, *given: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*given):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def disk_of(size: str, folder: Path) -> Iterator[None]:
    folder.mkdir()
    called("mount", b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={size}".encode())
    try:
        yield
    finally:
        called("umount2", bytes(folder), MNT_DETACH)


def make_room(folder: Path) -> None:
    called("mount", b"tmpfs", bytes(folder), b"tmpfs", MS_REMOUNT, f"size={LARGE}".encode())


def on_a_small_disk(size: str, on: tuple[str, ...], case: Case) -> tuple[str, str]:
    """The job ends in its result or in a sentence; with more room the same command then gives that result."""
    out, home = (f"disk/{name}" if name in on else name for name in (RESULT, CACHE))
    disk, cache = case.folder / "disk", case.folder / home
    with disk_of(size, disk):
        ended = run_verb(case.command(out), cache, case.folder)
        how, wrong = ended.judged()
        if wrong:
            return how, wrong
        if how == "sentence":
            if left := [path.name for path in disk.rglob("*.partial") if path.is_file()]:
                return how, f"left {left} behind"
            make_room(disk)
            again = run_verb([*case.command(out), *case.job.again], cache, case.folder)
            if again.code != 0:
                return how, f"and with more room: {again.errors[-300:]} (before: {ended.errors[-200:]})"
        others = differing(case.wanted, case.job.left(case.folder / out, cache))
        return how, f"other files than with room: {others}" if others else ""
