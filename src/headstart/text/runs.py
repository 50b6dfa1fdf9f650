"""A cache for tokenizers: runs between white space repeat, so the ids of most of them are known already."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# About a quarter of a million runs, at 8 characters each.
KEPT_CHARACTERS = 2_000_000
UNIT_BYTES = 4


class RunCache(dict[str, bytes]):
    """run -> its ids, as the bytes of an int32 array: joining bytes is the fastest way to one flat array."""

    def __init__(self) -> None:
        super().__init__()
        self._characters = 0

    def make_room(self) -> None:
        """Clear the cache when it is too large; frequent runs soon return. Called between texts."""
        if self._characters > KEPT_CHARACTERS:
            self.clear()
            self._characters = 0

    def keep(self, run: str, ids: bytes) -> None:
        self[run] = ids
        self._characters += len(run)


def to_bytes(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()  # faster than numpy for a few ids


def flatten(pieces: list[bytes], runs_per_sentence: list[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ids of all runs, concatenated, and the length of each sentence."""
    ids = np.frombuffer(b"".join(pieces), dtype=np.int32)
    units = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)) // UNIT_BYTES
    ends = np.concatenate([[0], np.cumsum(units)])[np.cumsum([0, *runs_per_sentence])]
    return ids, np.diff(ends).astype(np.int32)
