"""Vectors of a text that is not encoded to its end yet: a folder beside the file that it will be, to go on from.

A process that is killed leaves what it saved last. The next one with the same command cuts the files back to that,
passes over the lines that are done, and goes on: bit for bit as if it had never been stopped.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from headstart.atomic import PARTIAL, locked, make_folder, sync
from headstart.config import Table
from headstart.errors import CheckpointError, HeadstartError
from headstart.inspection.growing import reporting
from headstart.inspection.shards import RECORD, Reached, Shard, read_record

LOCK = "lock"
SECONDS_BETWEEN_SAVES = 3.0


class Unfinished(Shard):
    """All lines up to some place. Used inside `claimed`.

    Lines behind that place may be encoded already, into shards of their own; see `sharing`.
    """

    def __init__(self, folder: Path, settings: Table, reached: Reached, *, resumable: bool) -> None:
        super().__init__(folder, settings, reached)
        self.resumable = resumable
        self._saved = time.monotonic()
        self._is_open = False
        self._taken: list[Path] = []
        """Folders of shards that are no longer needed once the record says so."""

    def open(self) -> None:
        super().open()
        self._is_open = True

    def check_text(self, read: int, digest: str) -> None:
        """Whether the text, read up to what is done, is still the one that was encoded."""
        if read < self.reached.lines or digest != self.reached.digest:
            raise CheckpointError(
                f"{self.folder}: the first {self.reached.lines:,} lines of the text are no longer those that were "
                "encoded. Give the text as it was to go on, or remove that folder to begin anew."
            )

    def take(self, shard: Shard) -> None:
        """Put a shard behind the lines that are done; its folder goes when that is saved."""
        self.append(shard)
        self._taken.append(shard.folder)
        self.pause(shard.reached.digest)

    def pause(self, digest: str) -> None:
        """Encoding can go on from here; from time to time this is saved."""
        self.reach(digest)
        if time.monotonic() - self._saved >= SECONDS_BETWEEN_SAVES:
            self.save()
            self._saved = time.monotonic()

    def save(self) -> None:
        if not self.resumable:
            self.flush()
            return
        super().save()
        for folder in self._taken:
            shutil.rmtree(folder, ignore_errors=True)
        self._taken.clear()

    def complete(self) -> None:
        """All lines are done: the arrays become whole .npy files."""
        self.save()
        self.vectors.complete()
        if self.lengths is not None:
            self.lengths.complete()

    def put_in_place(self, names: Mapping[str, Path]) -> None:
        """Move whole files to where they are wanted, the main one last, and remove the folder."""
        self.close()
        self._is_open = False
        if not self.reached.whole:
            self.reached = replace(self.reached, whole=True)
            self.write_record()
        for name, path in names.items():
            if (self.folder / name).exists():  # a process that was killed here has moved some of them
                with reporting(path):
                    os.replace(self.folder / name, path)
                    sync(path.parent)
        shutil.rmtree(self.folder, ignore_errors=True)

    def leave(self) -> None:
        """After an error or Ctrl-C: what is done stays, if anything is; otherwise no folder is left."""
        if self._is_open and self.reached.lines and self.resumable:
            with suppress(HeadstartError):  # the disk may be full; what was saved last then counts
                self.save()
        self.close()
        if not (self.resumable and any(self.folder.rglob(RECORD))):
            self.discard()

    def discard(self) -> None:
        self.resumable = False
        shutil.rmtree(self.folder, ignore_errors=True)


def folder_of(out: Path) -> Path:
    return out.with_name(f"{out.name}{PARTIAL}")


@contextmanager
def claimed(out: Path, settings: Table, *, main: str, resumable: bool) -> Iterator[Unfinished]:
    """The unfinished vectors of `out`, begun by an earlier process or new, with other processes locked out.

    main: what the finished file is called in the folder. resumable: the text can be read again from its beginning,
    which standard input cannot.
    """
    folder = folder_of(out)
    try:
        with reporting(out):
            make_folder(folder)
            (folder / LOCK).touch()
    except CheckpointError:
        with suppress(OSError):  # it may hold what an earlier process has saved
            folder.rmdir()
        raise
    with locked(folder / LOCK, f"{folder}: another process is at work on this file. Wait until it ends."):
        if not resumable and any(folder.rglob(RECORD)):
            raise CheckpointError(
                f"{folder}: holds lines that are encoded already, and standard input cannot go on behind them. Give "
                "the text as a file, or remove that folder to begin anew."
            )
        reached = read_record(folder, settings)
        if reached.whole and not (folder / main).exists():  # it was put in place and taken away since
            reached = Reached()
        part = Unfinished(folder, settings, reached, resumable=resumable)
        try:
            if not reached.whole:
                part.open()
            yield part
        except BaseException:
            part.leave()
            raise
