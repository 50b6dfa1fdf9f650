"""Training sequences: the sentences of a corpus, or windows of its documents. Item i is found without a scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headstart.text.shards import Shards

Ids = NDArray[np.integer]


class Sequences(Protocol):
    """Numbered sequences of unit ids over a corpus."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Ids: ...
    def lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]: ...


class Sentences:
    """Each sentence of the corpus is a sequence."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards

    def __len__(self) -> int:
        return self.shards.n_sentences

    def __getitem__(self, index: int) -> Ids:
        return self.shards.sentence(index)

    def lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.shards.sentence_lengths(indices)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a window lies: units [start, end) of a document."""

    document: int
    start: int
    end: int


class Windows:
    """Each document is cut evenly into the fewest windows of at most `length` units.

    A cut moves to the nearest sentence end where one is close enough to keep both windows within the length.
    """

    def __init__(self, shards: Shards, length: int) -> None:
        self.shards = shards
        self.length = length
        self.document_lengths = shards.document_lengths()
        self.per_document = -(-self.document_lengths // length)
        self.ends = np.cumsum(self.per_document)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: int) -> Ids:
        place = self.place(index)
        return self.shards.document(place.document)[0][place.start : place.end]

    def lengths(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The even share of its document: cuts that moved to a sentence end differ from it by a few units."""
        documents = np.searchsorted(self.ends, indices, side="right")
        return self.document_lengths[documents] // self.per_document[documents]

    def place(self, index: int) -> Place:
        document = int(np.searchsorted(self.ends, index, side="right"))
        number = index - int(self.ends[document] - self.per_document[document])
        sentence_ends = self.shards.document(document)[1]
        start, end = (self._cut(document, cut, sentence_ends) for cut in (number, number + 1))
        return Place(document, start, end)

    def _cut(self, document: int, number: int, sentence_ends: NDArray[np.int64]) -> int:
        units, windows = int(self.document_lengths[document]), int(self.per_document[document])
        even = number * units // windows
        if number in (0, windows):
            return even
        slack = (self.length - -(-units // windows)) // 2
        near = np.searchsorted(sentence_ends, even)
        candidates = sentence_ends[max(0, near - 1) : near + 1]
        closest = int(candidates[np.abs(candidates - even).argmin()]) if len(candidates) else even
        return closest if abs(closest - even) <= slack else even
