"""The occurrences of words in a text, each with its vector: an index on disk, built once and searched memory-mapped.

The folder of an index:

- `index.json`: the encoder, its layer and the text that it is of
- `vectors.f16`, `places.u32`: a row for each occurrence, its vector and where it stands (sentence, start, end)
- `sentences.txt`, `sentences.u64`: the sentences one after the other, and where each ends, in bytes
- `committed.json`: how much of these files is whole, with checksums. A part of the text is added to them, then counted
  here
- `centre.npz`: the mean vector, and how far each vector is from it
- `search-N.faiss`: of a large index, what faiss searches instead of all vectors

Vectors are float16: a million of width 384 take 0.77 GB, and their cosines are those of float32 to three digits.

Letters: n occurrences, D width.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.atomic import write_atomically, write_text
from headstart.errors import CheckpointError
from headstart.inspection.occurrence_search import Centre
from headstart.training.run import sum_of

IDENTITY, COMMITTED, CENTRE, LOCK = "index.json", "committed.json", "centre.npz", "lock"
VECTORS, PLACES, SENTENCES, ENDS = "vectors.f16", "places.u32", "sentences.txt", "sentences.u64"
PLACE_BYTES = 12
REMOVE = " Remove its folder to build it anew."
OWN_SUM = "sha256"
"""The key of the checksum of committed.json itself."""
BLOCK = 1 << 20
ADVICE = "What is indexed stays: make room, then give the same command, or another --index."


@dataclass(frozen=True, slots=True)
class Committed:
    """What the files of an index hold for certain. read: sentences of the text that were looked at."""

    read: int = 0
    sentences: int = 0
    sentence_bytes: int = 0
    occurrences: int = 0
    too_long: int = 0
    ended: bool = False
    """The text has no more sentences."""
    sums: dict[str, int] = field(default_factory=dict)
    """CRC-32 of these bytes of each file; empty in an index of a version that kept none."""

    def sizes(self, width: int) -> dict[str, int]:
        """Bytes of each file."""
        return {
            VECTORS: 2 * width * self.occurrences,
            PLACES: PLACE_BYTES * self.occurrences,
            SENTENCES: self.sentence_bytes,
            ENDS: 8 * self.sentences,
        }


def read_committed(folder: Path) -> Committed:
    path = folder / COMMITTED
    if not path.exists():
        return Committed()
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        if noted.pop(OWN_SUM, None) not in (None, sum_of(noted)):
            raise ValueError("its checksum does not match")
        return Committed(**noted)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise broken(path, error) from error


def write_committed(folder: Path, done: Committed) -> None:
    noted = asdict(done)
    write_text(folder / COMMITTED, json.dumps(noted | {OWN_SUM: sum_of(noted)}), ADVICE)


def with_sums(folder: Path, width: int, before: Committed, done: Committed) -> Committed:
    """`done` with the checksums of its bytes. before: what was committed until now, so that only the rest is read."""
    if before.occurrences and not before.sums:
        return done
    starts = before.sizes(width)
    sums = {
        name: sum_between(folder / name, starts[name], size, before.sums.get(name, 0))
        for name, size in done.sizes(width).items()
    }
    return replace(done, sums=sums)


def sum_between(path: Path, start: int, end: int, value: int = 0) -> int:
    """CRC-32 of the bytes from start to end, going on from `value`, that of the bytes before them."""
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(min(BLOCK, end - file.tell())):
            value = zlib.crc32(block, value)
    return value


def check_files(folder: Path, width: int, done: Committed, without: Collection[str] = ()) -> None:
    """Compare the files with their checksums. without: files that are not read."""
    for name, size in done.sizes(width).items():
        path = folder / name
        try:
            if name in done.sums and name not in without and sum_between(path, 0, size) != done.sums[name]:
                raise broken(path, "its checksum does not match")
        except OSError as error:
            raise broken(path, error) from error


def cut_to(folder: Path, done: Committed, width: int) -> None:
    """Drop from the files what a killed process had begun behind what is committed."""
    for name, size in done.sizes(width).items():
        with (folder / name).open("ab") as file:
            if file.tell() < size:
                raise broken(folder / name, f"{file.tell():,} bytes where {size:,} were written")
            file.truncate(size)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


class Files:
    """The arrays of an index, mapped from disk."""

    def __init__(self, folder: Path, width: int, done: Committed) -> None:
        n = done.occurrences
        for name, size in done.sizes(width).items():
            if (folder / name).stat().st_size < size:
                raise broken(folder / name, f"shorter than the {size:,} bytes that were written")
        self.vectors = mapped(folder / VECTORS, "<f2", (n, width))
        self.places = mapped(folder / PLACES, "<u4", (n, 3))
        self.text = mapped(folder / SENTENCES, "u1", (done.sentence_bytes,))
        self.ends = mapped(folder / ENDS, "<u8", (done.sentences,))


def mapped(path: Path, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    # Copy on write: torch warns of arrays that cannot be written, and nothing writes to these.
    return np.memmap(path, dtype, "c", shape=shape).view(np.ndarray)


def write_centre(folder: Path, centre: Centre) -> None:
    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            np.savez(file, mean=centre.mean, lengths=centre.lengths)

    write_atomically(folder / CENTRE, write, advice=ADVICE)


def read_centre(folder: Path) -> Centre:
    try:
        with np.load(folder / CENTRE) as found:
            return Centre(found["mean"], found["lengths"])
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise broken(folder / CENTRE, error) from error


def broken(path: Path, why: object) -> CheckpointError:
    return CheckpointError(f"{path}: this part of an index is broken ({why}).{REMOVE}")
