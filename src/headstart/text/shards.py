"""Ids on disk as one run of units, sentences and documents: written once in order, read as memory maps."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.text.shard_files import MappedShard, ShardCounts, bounds, read_index
from headstart.text.shard_writer import ShardWriter

__all__ = ["ShardWriter", "Shards"]

COUNTED_AT_ONCE = 1 << 22


class Shards:
    """All shards of a folder. Units, sentences and documents are numbered from 0 over all shards.

    Ids are views of the files, uint16 or int32: cast before doing arithmetic.
    """

    def __init__(self, directory: Path, vocabulary_size: int, counts: list[ShardCounts]) -> None:
        self.directory = directory
        self.vocabulary_size = vocabulary_size
        self._shards = [MappedShard(directory, number, shard) for number, shard in enumerate(counts)]
        self._units = [0, *accumulate(shard.units for shard in counts)]
        self._sentences = [0, *accumulate(shard.sentences for shard in counts)]
        self._documents = [0, *accumulate(shard.documents for shard in counts)]
        self._extras = [0, *accumulate(shard.extras for shard in counts)]
        self.n_units = self._units[-1]
        self.n_sentences = self._sentences[-1]
        self.n_documents = self._documents[-1]

    @classmethod
    def open(cls, directory: Path) -> Shards:
        vocabulary_size, counts = read_index(directory)
        return cls(directory, vocabulary_size, counts)

    def sentence(self, index: int) -> NDArray[Any]:
        """The ids of one sentence, as a view."""
        number = locate(self._sentences, index, "sentence")
        shard = self._shards[number]
        first, last = bounds(shard.sentence_ends, index - self._sentences[number])
        return shard.ids[first:last]

    def sentence_lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lengths of these sentences, in units."""
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.n_sentences:
            raise IndexError(f"sentence indices must lie in [0, {self.n_sentences})")
        numbers = np.searchsorted(self._sentences, indices, side="right") - 1
        lengths = np.empty(len(indices), dtype=np.int64)
        for number in np.unique(numbers):
            here = numbers == number
            local = indices[here] - self._sentences[number]
            ends = self._shards[number].sentence_ends
            lengths[here] = ends[local] - np.where(local > 0, ends[local - 1], 0)
        return lengths

    def document(self, index: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The ids of a document, and the ends of its sentences in them."""
        number = locate(self._documents, index, "document")
        shard = self._shards[number]
        first, last = bounds(shard.document_ends, index - self._documents[number])
        start = bounds(shard.sentence_ends, first)[0]
        ends = shard.sentence_ends[first:last] - start
        return shard.ids[start : start + int(ends[-1])], ends

    def document_lengths(self) -> NDArray[np.int64]:
        """The lengths of all documents, in units."""
        lengths = [np.diff(shard.sentence_ends[shard.document_ends - 1], prepend=0) for shard in self._shards]
        return np.concatenate([np.empty(0, dtype=np.int64), *lengths])

    def unit_counts(self) -> NDArray[np.int64]:
        """How often each unit of the vocabulary occurs, (V,); words outside it are left out."""
        counts = np.zeros(self.vocabulary_size, dtype=np.int64)
        for shard in self._shards:
            for first in range(0, len(shard.ids), COUNTED_AT_ONCE):
                found = np.bincount(shard.ids[first : first + COUNTED_AT_ONCE], minlength=self.vocabulary_size)
                counts += found[: self.vocabulary_size]
        return counts

    def sentences_between(self, first: int, last: int) -> list[NDArray[Any]]:
        """The sentences whose first unit is in [first, last), counting the units of all shards."""
        found: list[NDArray[Any]] = []
        for number, shard in enumerate(self._shards):
            start, end = self._units[number], self._units[number + 1]
            if last <= start or end <= first:
                continue
            # Sentence i starts where sentence i - 1 ends, and none is empty, so the ends are strictly increasing.
            low = int(np.searchsorted(shard.sentence_ends, first - start)) + 1 if first > start else 0
            high = int(np.searchsorted(shard.sentence_ends, last - start)) + 1
            ends = shard.sentence_ends[low:high].tolist()
            begin = bounds(shard.sentence_ends, low)[0] if ends else 0
            for stop in ends:
                found.append(shard.ids[begin:stop])
                begin = stop
        return found

    def extra(self, id: int) -> str:
        """The out-of-vocabulary word with this id."""
        index = id - self.vocabulary_size
        number = locate(self._extras, index, "word outside the vocabulary")
        shard = self._shards[number]
        first, last = bounds(shard.extra_ends, index - self._extras[number])
        return shard.extras[first:last].tobytes().decode("utf-8")


def locate(starts: list[int], index: int, kind: str) -> int:
    """The number of the shard with this index. starts[-1] is the total."""
    if not 0 <= index < starts[-1]:
        raise IndexError(f"there is no {kind} {index}; there are {starts[-1]}")
    return bisect_right(starts, index) - 1
