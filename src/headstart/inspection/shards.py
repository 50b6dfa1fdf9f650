"""Vectors of lines that follow each other in a text, in a folder of growing files with a record of how far it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from headstart.atomic import write_text
from headstart.config import Table
from headstart.errors import CheckpointError
from headstart.inspection.growing import GrowingArray, GrowingFile, GrowingTexts
from headstart.pretrained import Vectors

RECORD = "record.json"
VECTORS, LENGTHS, TEXTS = "vectors.npy", "lengths.npy", "texts.jsonl"
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
    """Of the text from its beginning up to here, so that one that was changed since is noticed."""
    whole: bool = False
    """The finished files are in the folder, or in their places already."""


class Shard:
    """The folder, its files open for more rows after `open`."""

    def __init__(self, folder: Path, settings: Table, reached: Reached | None = None) -> None:
        self.folder, self.settings, self.reached = folder, settings, reached or Reached()
        self.vectors = GrowingArray(folder / VECTORS, tuple(settings["row"]), np.float32)
        self.lengths = GrowingArray(folder / LENGTHS, (), np.int64) if settings["pool"] == "words" else None
        self.texts = GrowingTexts(folder / TEXTS) if settings["texts"] else None
        self._lines, self._empty, self._cut = self.reached.lines, self.reached.empty, self.reached.cut

    @property
    def files(self) -> list[GrowingFile]:
        return [file for file in (self.vectors, self.lengths, self.texts) if file is not None]

    def open(self) -> None:
        self.vectors.open(self.reached.rows)
        if self.lengths is not None:
            self.lengths.open(self.reached.lines)
        if self.texts is not None:
            self.texts.open(self.reached.text_bytes)

    def close(self) -> None:
        for file in self.files:
            file.close()

    def add(self, rows: Vectors, *, words: int, kept: str | list[str] | None, cut: bool) -> None:
        """The rows of the next line. kept: what the finished file shows of its text."""
        self.vectors.add(rows)
        if self.lengths is not None:
            self.lengths.add(np.array([words]))
        if self.texts is not None and kept is not None:
            self.texts.add(kept)
        self._lines += 1
        self._empty += not words
        self._cut += cut

    def append(self, other: Shard) -> None:
        """The rows of the lines that come next, from another folder."""
        self.vectors.append(other.vectors, other.reached.rows)
        if self.lengths is not None and other.lengths is not None:
            self.lengths.append(other.lengths, other.reached.lines)
        if self.texts is not None and other.texts is not None:
            self.texts.copy(other.texts.path, 0, other.reached.text_bytes)
        self._lines += other.reached.lines
        self._empty += other.reached.empty
        self._cut += other.reached.cut

    def reach(self, digest: str) -> None:
        """Encoding can go on behind the lines that were added. digest: as in `Reached`."""
        text_bytes = self.texts.size if self.texts is not None else 0
        self.reached = Reached(self._lines, self.vectors.rows, self._empty, self._cut, text_bytes, digest)

    def flush(self) -> None:
        for file in self.files:
            file.flush()

    def save(self) -> None:
        """The files first, then the record, which makes them count."""
        self.flush()
        self.write_record()

    def write_record(self) -> None:
        record = {"settings": self.settings, "reached": asdict(self.reached)}
        write_text(self.folder / RECORD, json.dumps(record, indent=1) + "\n", ADVICE)


def read_record(folder: Path, settings: Table) -> Reached:
    """How far a folder is that was begun with the same settings; at the beginning if it has no record."""
    path = folder / RECORD
    if not path.exists():
        return Reached()
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        before, reached = dict(record["settings"]), Reached(**record["reached"])
        if any(type(getattr(reached, field.name)) is not type(field.default) for field in fields(Reached)):
            raise ValueError("a field is of another type")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: is broken ({error}). Remove {folder} to begin anew.") from error
    different = differing(before, settings)
    if different is not None:
        raise CheckpointError(
            f"{folder}: was begun with another {different}. Give the same command as before to go on, or remove that "
            "folder to begin anew."
        )
    return reached


def differing(before: Table, settings: Table) -> str | None:
    """The first setting that is not what it was, as it is called in a message."""
    return next((NAMES[key] for key in settings if before.get(key) != settings[key]), None)


NAMES = {
    "encoder": "encoder, or precision",
    "layers": "choice of layers",
    "pool": "pool",
    "row": "shape of vectors",
    "texts": "format",
    "format": "format",
}
