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

NAME = "mutated"
TIMES, QUICK_TIMES = 2_000, 40
PACKED = (".gz", ".tgz")


def run(setting: Setting) -> Iterator[Outcome]:
    for name, reader in READERS.items():
        if not setting.wants(name) or (setting.quick and not reader.quick and setting.case is None):
            continue
        numbers = [n for n in range(QUICK_TIMES if setting.quick else TIMES) if setting.wants(name, n)]
        folder = setting.folder / name.replace(" ", "-")
        valid = prepared(reader, folder)
        read = damaged(reader, folder, valid, f"{setting.seed} {name}")
        for number, ended, wrong in outcomes_of(read, numbers, partial(warm_up, reader, folder, valid)):
            yield Outcome(NAME, name, number, ended, wrong)
        shutil.rmtree(folder)


def prepared(reader: Reader, folder: Path) -> bytes:
    """Make the valid files and read them once: what is not valid cannot be damaged, and imports are done."""

    def make(_: int) -> None:
        folder.mkdir()
        reader.make(folder)
        reader.read(folder / reader.file)

    # In a child, because threads that a library starts here would be missing in the children that come.
    [(_, ended, wrong)] = outcomes_of(make, [0], seconds=120, memory=8 << 30)
    if ended != "result":
        raise SystemExit(f"{reader.file}: a valid file is not read: {ended} {wrong}")
    return (folder / reader.file).read_bytes()


def warm_up(reader: Reader, folder: Path, valid: bytes) -> None:
    (folder / reader.file).write_bytes(valid)
    reader.read(folder / reader.file)


def damaged(reader: Reader, folder: Path, valid: bytes, seed: str) -> Callable[[int], object]:
    def read(number: int) -> object:
        path = folder / reader.file
        path.write_bytes(mutated(valid, f"{seed} {number}", path.name.endswith(PACKED)))
        return reader.read(path)

    return read
