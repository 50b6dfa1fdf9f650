"""Mutated input: each reader is given a valid file with one to three changes, thousands of times."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.faults.child import outcomes_of
from bench.faults.mutations import mutated
from bench.faults.outcome import Outcome, Setting
from bench.faults.readers import READERS, Reader
from headstart.checksums import SUMS
from headstart.errors import HeadstartError

NAME = "mutated"
GROUPS = tuple(READERS)
QUICK = tuple(name for name, reader in READERS.items() if reader.quick)
TIMES, QUICK_TIMES = 2_000, 40
PACKED = (".gz", ".tgz")


def run(group: str, setting: Setting) -> Iterator[Outcome]:
    reader, folder = READERS[group], setting.folder / "files"
    fault = prepared(reader, folder)
    if fault:
        yield Outcome(NAME, group, -1, "invalid", f"a valid file is not read: {fault}")
        return
    valid = (folder / reader.file).read_bytes()
    shutil.copytree(folder, kept_of(folder))
    read = damaged(reader, folder, valid, f"{setting.seed} {group}")
    numbers = setting.numbers(group, TIMES, QUICK_TIMES)
    for number, ended, wrong in outcomes_of(read, numbers, partial(warm_up, reader, folder)):
        yield Outcome(NAME, group, number, ended, wrong)


def kept_of(folder: Path) -> Path:
    """A copy that nothing damages."""
    return folder.with_name(f"{folder.name}.kept")


def prepared(reader: Reader, folder: Path) -> str:
    """Make the valid files and read them once; what went wrong with that, if anything did."""

    def make(_: int) -> None:
        folder.mkdir()
        reader.make(folder)
        # As earlier versions wrote it: whether the reader itself notices is what is asked here.
        (folder / SUMS).unlink(missing_ok=True)
        try:
            reader.read(folder / reader.file)
        except HeadstartError as error:
            raise ValueError(str(error)) from error

    # In a child, because threads that a library starts here would be missing in the children that come.
    [(_, ended, wrong)] = outcomes_of(make, [0], seconds=120, memory=8 << 30)
    return "" if ended == "result" else f"{ended} {wrong}"


def warm_up(reader: Reader, folder: Path) -> None:
    shutil.copytree(kept_of(folder), folder, dirs_exist_ok=True)
    reader.read(folder / reader.file)


def damaged(reader: Reader, folder: Path, valid: bytes, seed: str) -> Callable[[int], object]:
    def read(number: int) -> object:
        path = folder / reader.file
        if not path.exists():  # a damaged entry of the cache is removed
            shutil.copytree(kept_of(folder), folder, dirs_exist_ok=True)
        path.write_bytes(mutated(valid, f"{seed} {number}", path.name.endswith(PACKED)))
        return reader.read(path)

    return read
