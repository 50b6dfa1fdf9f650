"""Results of a tokenizer: the units of one text, or the flat ids of many sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Encoding:
    """The units of one text: units[i] covers text[spans[i, 0]:spans[i, 1]] and belongs to word number words[i]."""

    text: str
    units: list[str]
    ids: NDArray[np.int32]  # (n,)
    spans: NDArray[np.int32]  # (n, 2), in characters of the original text
    words: NDArray[np.int32]  # (n,)


@dataclass(frozen=True, slots=True)
class UnitIds:
    """The part of an Encoding that an encoder reads."""

    ids: NDArray[np.int32]  # (n,)
    words: NDArray[np.int32]  # (n,)


@dataclass(frozen=True, slots=True)
class SentenceIds:
    """Sentences as flat ids. An id >= vocabulary size is the word extras[id - vocabulary size]."""

    ids: NDArray[np.int32]  # (units,)
    lengths: NDArray[np.int32]  # (sentences,), summing to len(ids)
    extras: list[str]  # out-of-vocabulary words, each once

    def cut(self, most: int) -> SentenceIds:
        """Cut sentences longer than `most` units into several."""
        pieces = self.pieces(most)
        lengths = np.full(int(pieces.sum()), most, dtype=np.int32)
        last = np.cumsum(pieces) - 1
        whole = pieces > 0
        lengths[last[whole]] = (self.lengths - (pieces - 1) * most)[whole]
        return SentenceIds(self.ids, lengths, self.extras)

    def pieces(self, most: int) -> NDArray[np.int32]:
        """The number of pieces that `cut` makes of each sentence."""
        return (-(-self.lengths // most)).astype(np.int32)


def places_of(words: Sequence[str]) -> list[tuple[int, int]]:
    """(start, end) of each word in " ".join(words)."""
    places: list[tuple[int, int]] = []
    start = 0
    for word in words:
        places.append((start, start + len(word)))
        start += len(word) + 1
    return places
