"""The layout of shards on disk: plain little-endian arrays.

A folder of shards holds, per shard,
  00000.ids         the units: uint16 if every id fits and there are no out-of-vocabulary words, else int32
  00000.sentences   int64, where each sentence ends, in units of the shard
  00000.documents   int64, where each document ends, in sentences of the shard
  00000.extras      the out-of-vocabulary words first seen in this shard, UTF-8, concatenated
  00000.extra_ends  int64, where each of these words ends, in bytes
and `index.json`, written last: without it the folder is not a set of shards.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError

FORMAT = 1
INDEX = "index.json"
NARROW, WIDE, ENDS = "<u2", "<i4", "<i8"
PARTS = ("ids", "sentences", "documents", "extras", "extra_ends")


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """The sizes of one shard, as in index.json."""

    units: int
    sentences: int
    documents: int
    extras: int
    extra_bytes: int
    dtype: str


def shard_file(directory: Path, number: int, part: str) -> Path:
    return directory / f"{number:05d}.{part}"


def write_index(directory: Path, vocabulary_size: int, shards: list[ShardCounts]) -> None:
    """Write to a temporary name and rename, so that a reader sees all of it or nothing."""
    index = {"format": FORMAT, "vocabulary_size": vocabulary_size, "shards": [asdict(shard) for shard in shards]}
    temporary = directory / f"{INDEX}.part"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(index, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / INDEX)


def read_index(directory: Path) -> tuple[int, list[ShardCounts]]:
    """The vocabulary size, and the sizes of each shard."""
    path = directory / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        found = index["format"]
        counts = [whole_counts(**shard) for shard in index["shards"]] if found == FORMAT else []
        vocabulary_size = whole(index["vocabulary_size"])
    except OSError as error:
        raise DataError(f"{directory}: not a folder of shards ({INDEX}: {error.strerror}).") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: broken ({error}). {again(directory)}") from error
    if found != FORMAT:
        raise DataError(f"{path}: has format {found}, this version reads {FORMAT}. {again(directory)}")
    return vocabulary_size, counts


def whole_counts(*, dtype: object, **counts: object) -> ShardCounts:
    if dtype not in (NARROW, WIDE):
        raise ValueError(f"ids of the type {dtype!r:.40}")
    return ShardCounts(**{name: whole(count) for name, count in counts.items()}, dtype=str(dtype))


def whole(count: object) -> int:
    if type(count) is not int or not 0 <= count < 1 << 60:
        raise ValueError(f"{count!r:.40} is not a count")
    return count


class MappedShard:
    """The arrays of one shard, memory-mapped."""

    def __init__(self, directory: Path, number: int, counts: ShardCounts) -> None:
        def mapped(part: str, dtype: str, length: int) -> NDArray[Any]:
            return map_array(shard_file(directory, number, part), dtype, length)

        self.ids = mapped("ids", counts.dtype, counts.units)
        self.sentence_ends: NDArray[np.int64] = mapped("sentences", ENDS, counts.sentences)
        self.document_ends: NDArray[np.int64] = mapped("documents", ENDS, counts.documents)
        self.extras: NDArray[np.uint8] = mapped("extras", "u1", counts.extra_bytes)
        self.extra_ends: NDArray[np.int64] = mapped("extra_ends", ENDS, counts.extras)


def map_array(path: Path, dtype: str, length: int) -> NDArray[Any]:
    expected = length * np.dtype(dtype).itemsize
    try:
        found = path.stat().st_size
        if found != expected:
            raise DataError(f"{path}: has {found} bytes where {expected} were written. {again(path.parent)}")
        if not length:  # an empty file cannot be mapped
            return np.empty(0, dtype=dtype)
        # Viewed as a plain array: slicing an np.memmap is several times slower.
        return np.memmap(path, dtype=dtype, mode="r", shape=(length,)).view(np.ndarray)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}). {again(path.parent)}") from error


def bounds(ends: NDArray[np.int64], index: int) -> tuple[int, int]:
    """(start, end) of run `index`, given the ends of all runs."""
    return (int(ends[index - 1]) if index else 0), int(ends[index])


def again(directory: Path) -> str:
    return f"Delete {directory} to have it made again."
