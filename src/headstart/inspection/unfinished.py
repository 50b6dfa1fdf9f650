"""Vectors of a text that is not encoded to its end yet: a folder beside the file that it will be, to go on from.

A process that is killed leaves what it saved last. The next one with the same command cuts the files back to that,
passes over the lines that are done, and goes on: bit for bit as if it had never been stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from headstart.atomic import PARTIAL, locked, make_folder, sync, write_text
from headstart.config import Table
from headstart.errors import CheckpointError, HeadstartError
from headstart.inspection.growing import GrowingArray, GrowingFile, GrowingTexts, reporting
from headstart.pretrained import Vectors
from headstart.transfer.features import spelled, with_length

RECORD, LOCK = "record.json", "lock"
VECTORS, LENGTHS, TEXTS = "vectors.npy", "lengths.npy", "texts.jsonl"
SECONDS_BETWEEN_SAVES = 3.0
ADVICE = "Make room there and give the same command again, which goes on where it was."


@dataclass(frozen=True, slots=True)
class Reached:
    """A place in the text from which encoding can go on, and how much of each file belongs to what is before it."""

    lines: int = 0
    rows: int = 0
    empty: int = 0
    """Lines without a word."""
    cut: int = 0
    """Lines longer than the encoder's input."""
    text_bytes: int = 0
    digest: str = hashlib.sha256().hexdigest()
    """Of the lines, so that a text that was changed since is noticed."""
    whole: bool = False
    """The finished files are in the folder, or in their places already."""


class Unfinished:
    """The folder, its files open for more rows. Used inside `claimed`."""

    def __init__(self, folder: Path, settings: Table, reached: Reached, *, resumable: bool) -> None:
        self.folder, self.settings, self.reached = folder, settings, reached
        self.resumable = resumable
        self.vectors = GrowingArray(folder / VECTORS, tuple(settings["row"]), np.float32)
        self.lengths = GrowingArray(folder / LENGTHS, (), np.int64) if settings["pool"] == "words" else None
        self.texts = GrowingTexts(folder / TEXTS) if settings["texts"] else None
        self._empty, self._cut = reached.empty, reached.cut
        self._digest = hashlib.sha256()
        self._lines = 0
        self._saved = time.monotonic()
        self._is_open = False

    @property
    def files(self) -> list[GrowingFile]:
        return [file for file in (self.vectors, self.lengths, self.texts) if file is not None]

    def open(self) -> None:
        self.vectors.open(self.reached.rows)
        if self.lengths is not None:
            self.lengths.open(self.reached.lines)
        if self.texts is not None:
            self.texts.open(self.reached.text_bytes)
        self._is_open = True

    def close(self) -> None:
        for file in self.files:
            file.close()

    def pass_over(self, texts: Iterator[str]) -> None:
        """Take the lines that are done from the text."""
        while self._lines < self.reached.lines:
            text = next(texts, None)
            if text is None:
                break
            self._count(text)
        if self._lines < self.reached.lines or self._digest.hexdigest() != self.reached.digest:
            raise CheckpointError(
                f"{self.folder}: the first {self.reached.lines:,} lines of the text are no longer those that were "
                "encoded. Give the text as it was to go on, or remove that folder to begin anew."
            )

    def add(self, rows: Vectors, *, words: int, text: str, kept: str | list[str] | None, cut: bool) -> None:
        """The rows of the next line. kept: what the finished file shows of its text."""
        self.vectors.add(rows)
        if self.lengths is not None:
            self.lengths.add(np.array([words]))
        if self.texts is not None and kept is not None:
            self.texts.add(kept)
        self._empty += not words
        self._cut += cut
        self._count(text)

    def _count(self, text: str) -> None:
        self._lines += 1
        self._digest.update(with_length(spelled(text)))

    def pause(self) -> None:
        """Encoding can go on from here; from time to time this is saved."""
        text_bytes = self.texts.size if self.texts is not None else 0
        self.reached = Reached(
            self._lines, self.vectors.rows, self._empty, self._cut, text_bytes, self._digest.hexdigest()
        )
        if time.monotonic() - self._saved >= SECONDS_BETWEEN_SAVES:
            self.save()
            self._saved = time.monotonic()

    def save(self) -> None:
        """The files first, then the record, which makes them count."""
        for file in self.files:
            file.flush()
        if self.resumable:
            self._write_record()

    def _write_record(self) -> None:
        record = {"settings": self.settings, "reached": asdict(self.reached)}
        write_text(self.folder / RECORD, json.dumps(record, indent=1) + "\n", ADVICE)

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
            self._write_record()
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
        if not (self.resumable and (self.folder / RECORD).exists()):
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
    with reporting(out):
        make_folder(folder)
        (folder / LOCK).touch()
    with locked(folder / LOCK, f"{folder}: another process is at work on this file. Wait until it ends."):
        reached = read_record(folder, settings, resumable=resumable)
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


def read_record(folder: Path, settings: Table, *, resumable: bool) -> Reached:
    """Where an earlier process got to with the same settings."""
    path = folder / RECORD
    if not path.exists():
        return Reached()
    if not resumable:
        raise CheckpointError(
            f"{folder}: holds lines that are encoded already, and standard input cannot go on behind them. Give the "
            "text as a file, or remove that folder to begin anew."
        )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        before, reached = dict(record["settings"]), Reached(**record["reached"])
        if any(type(getattr(reached, field.name)) is not type(field.default) for field in fields(Reached)):
            raise ValueError("a field is of another type")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: is broken ({error}). Remove {folder} to begin anew.") from error
    for key in settings:
        if before.get(key) != settings[key]:
            raise CheckpointError(
                f"{folder}: was begun with another {NAMES[key]}. Give the same command as before to go on, or remove "
                "that folder to begin anew."
            )
    return reached


NAMES = {
    "encoder": "encoder, or precision",
    "layers": "choice of layers",
    "pool": "pool",
    "row": "shape of vectors",
    "texts": "format",
    "format": "format",
}
"""What each setting is called in a message."""
