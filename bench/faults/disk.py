"""What a disk may hold after a power loss, from the journal that power.c kept of a process.

Data that were written after a file's last fsync may be there, be missing, be cut off or be zeros. Names that were made,
moved or removed after the last fsync of their folder may be as before. Two kinds of file systems are played:

- ordered, such as ext4 and XFS: changes of names come to the disk in their order, and any fsync brings all before it
- strict, what POSIX promises: each folder has its own order, and only its own fsync brings its names to the disk
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

ORDERED, STRICT = "ordered", "strict"
KEEP, SYNCED, JOURNAL, SHARED = "keep", "synced", "journal", "shared"
TORN = ("lost", "lost", "cut", "zeroed", "stale", "whole")
"""What becomes of data that were not synced."""
ROOT = 0
Node = int | str | None
"""A folder's number, the name of a file's content in the record, or nothing."""


@dataclass(slots=True)
class Change:
    """Of names: (folder, name) -> what is there afterwards. folder: the one whose fsync makes it lasting."""

    folder: int
    names: dict[tuple[int, str], Node]
    lasts: bool = False


def begin_record(root: Path, record: Path) -> None:
    """Everything that is there counts as synced."""
    shutil.rmtree(record, ignore_errors=True)
    for name in (KEEP, SYNCED):
        (record / name).mkdir(parents=True)
    for path in root.rglob("*"):
        if path.is_file():
            number = str(path.stat().st_ino)
            os.link(path, record / KEEP / number)
            shutil.copyfile(path, record / SYNCED / number)


class Disk:
    """The names under `root` as the process saw them, and which of their changes are lasting."""

    def __init__(self, root: Path, record: Path, before: list[tuple[str, Node]], kind: str) -> None:
        """before: what was there when the record began, as `listing` has it."""
        self.root, self.record, self.kind = root, record, kind
        self.changes: list[Change] = []
        self._folders = 1
        for name, node in before:
            self._add(name, self._new_folder() if node is None else node, lasts=True)
        for line in (record / JOURNAL).read_text("utf-8", "surrogateescape").splitlines():
            self._take(*line.split("\t"))

    def _take(self, letter: str, *given: str) -> None:
        if letter == "S":
            self._sync(None)
        elif letter == "F":
            self._sync(self._at(self._place(given[0])) if given[0] != str(self.root) else ROOT)
        elif letter == "R":
            old, new = self._place(given[0]), self._place(given[1])
            self._unseen(old, given[2])
            self.changes.append(Change(new[0], {old: None, new: self._at(old)}))
        elif letter in "MC":
            self._add(given[-1], self._new_folder() if letter == "M" else given[0])
        else:
            self._add(given[0], None)

    def _unseen(self, place: tuple[int, str], inode: str) -> None:
        """Safetensors renames by a system call past libc: what is about to be moved shows what had come there."""
        now = self._at(place)
        if isinstance(now, int) or now == inode:
            return
        names: dict[tuple[int, str], Node] = {}
        for change in self.changes:
            names |= change.names
        moved: dict[tuple[int, str], Node] = {name: None for name, node in names.items() if node == inode}
        self.changes.append(Change(place[0], {**moved, place: inode}))

    def _sync(self, folder: Node) -> None:
        for change in self.changes:
            change.lasts = change.lasts or self.kind == ORDERED or change.folder == folder

    def _add(self, path: str, node: Node, lasts: bool = False) -> None:
        place = self._place(path)
        self.changes.append(Change(place[0], {place: node}, lasts))

    def _new_folder(self) -> int:
        self._folders += 1
        return self._folders - 1

    def _place(self, path: str) -> tuple[int, str]:
        """The folder that a path is in, and its name there."""
        *folders, name = Path(os.path.normpath(path)).relative_to(self.root).parts
        at = ROOT
        for folder in folders:
            found = self._at((at, folder))
            if not isinstance(found, int):
                raise RuntimeError(f"{path}: {folder} is not a folder in the journal")
            at = found
        return at, name

    def _at(self, place: tuple[int, str]) -> Node:
        return next((change.names[place] for change in reversed(self.changes) if place in change.names), None)

    def lose_power(self, rng: random.Random) -> None:
        """Put under `root` what may be left."""
        names: dict[tuple[int, str], Node] = {}
        for change in self._left(rng):
            names |= change.names
        contents = {
            node: torn(self.record, node, rng) for node in sorted(set(filter(is_file, names.values())), key=str)
        }
        shutil.rmtree(self.root)
        self._write(ROOT, self.root, names, contents)

    def _left(self, rng: random.Random) -> list[Change]:
        """The changes that came to the disk: all that last, and some that followed, in the order of each folder."""
        more: dict[int, int] = {}
        left = []
        for folder in {ROOT} if self.kind == ORDERED else sorted({change.folder for change in self.changes}):
            own = [change for change in self.changes if self.kind == ORDERED or change.folder == folder]
            fixed = len(list(takewhile(lambda change: change.lasts, own)))
            more[folder] = rng.choice((fixed, len(own), rng.randint(fixed, len(own))))
            left += own[: more[folder]]
        chosen = {id(change) for change in left}
        return [change for change in self.changes if id(change) in chosen]

    def _write(self, folder: int, path: Path, names: dict[tuple[int, str], Node], contents: dict[Node, bytes]) -> None:
        path.mkdir()
        for (parent, name), node in names.items():
            if parent == folder and isinstance(node, int):
                self._write(node, path / name, names, contents)
            elif parent == folder and node is not None:
                (path / name).write_bytes(contents[node])


def is_file(node: Node) -> bool:
    return isinstance(node, str)


def listing(root: Path) -> list[tuple[str, Node]]:
    """Every path under `root`, folders before what is in them, with the name of a file's content in the record."""
    return [(str(path), str(path.stat().st_ino) if path.is_file() else None) for path in sorted(root.rglob("*"))]


def torn(record: Path, node: Node, rng: random.Random) -> bytes:
    """A file's content after the power loss: as it was synced last, as it is, or something between the two."""
    now, synced = record / KEEP / str(node), record / SYNCED / str(node)
    new, old = now.read_bytes(), synced.read_bytes() if synced.exists() else b""
    if new == old:
        return new
    how = rng.choice(TORN)
    if how in ("lost", "whole"):
        return old if how == "lost" else new
    same = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new))
    )
    cut = rng.randint(same, len(new))
    ends = {"cut": b"", "zeroed": bytes(len(new) - cut), "stale": old[cut:]}
    return new[:cut] + ends[how]
