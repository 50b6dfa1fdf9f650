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


class Shards:
    """All shards of a folder; units, sentences and documents are each numbered from 0 over the whole of it.

    Ids come as uint16 or int32 views of the files: cast before doing arithmetic on them.
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
        """The ids of one sentence: a view, nothing is copied."""
        number = locate(self._sentences, index, "sentence")
        shard = self._shards[number]
        first, last = bounds(shard.sentence_ends, index - self._sentences[number])
        return shard.ids[first:last]

    def sentence_lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Units of each of these sentences."""
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
        """The ids of a whole document, and where each of its sentences ends in them."""
        number = locate(self._documents, index, "document")
        shard = self._shards[number]
        first, last = bounds(shard.document_ends, index - self._documents[number])
        start = bounds(shard.sentence_ends, first)[0]
        ends = shard.sentence_ends[first:last] - start
        return shard.ids[start : start + int(ends[-1])], ends

    def document_lengths(self) -> NDArray[np.int64]:
        """Units of every document."""
        lengths = [np.diff(shard.sentence_ends[shard.document_ends - 1], prepend=0) for shard in self._shards]
        return np.concatenate([np.empty(0, dtype=np.int64), *lengths])

    def sentences_between(self, first: int, last: int) -> list[NDArray[Any]]:
        """Sentences whose first unit lies in [first, last) of the run of all units."""
        found: list[NDArray[Any]] = []
        for number, shard in enumerate(self._shards):
            start, end = self._units[number], self._units[number + 1]
            if last <= start or end <= first:
                continue
            # Sentence i begins where sentence i - 1 ends, and none is empty, so the ends strictly rise.
            low = int(np.searchsorted(shard.sentence_ends, first - start)) + 1 if first > start else 0
            high = int(np.searchsorted(shard.sentence_ends, last - start)) + 1
            ends = shard.sentence_ends[low:high].tolist()
            begin = bounds(shard.sentence_ends, low)[0] if ends else 0
            for stop in ends:
                found.append(shard.ids[begin:stop])
                begin = stop
        return found

    def extra(self, id: int) -> str:
        """The word behind an id that lies outside the vocabulary."""
        index = id - self.vocabulary_size
        number = locate(self._extras, index, "word outside the vocabulary")
        shard = self._shards[number]
        first, last = bounds(shard.extra_ends, index - self._extras[number])
        return shard.extras[first:last].tobytes().decode("utf-8")


def locate(starts: list[int], index: int, kind: str) -> int:
    """The shard that holds an index; starts[-1] is how many there are in all."""
    if not 0 <= index < starts[-1]:
        raise IndexError(f"there is no {kind} {index}; there are {starts[-1]}")
    return bisect_right(starts, index) - 1
