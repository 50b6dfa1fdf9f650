"""Texts longer than the encoder reads: overlapping windows of words, and their scores put together again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.batches.rows import Marked
from headstart.tasks.base import Passage, Scores


def word_windows(tokens: NDArray[np.int64], longest: int, stride: int | None = None) -> list[tuple[int, int]]:
    """Windows (first word, end) that cover all words, each of at most `longest` tokens or one word; none for no words.

    tokens: of each word. Neighbouring windows share `stride` tokens or one word more, by default a quarter of them, so
    that every word but those at the ends of the document has context on both sides in one of them.
    """
    shared_tokens = longest // 4 if stride is None else stride
    ends = np.cumsum(tokens)
    windows: list[tuple[int, int]] = []
    start = 0
    while len(tokens):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + longest, side="right")))
        windows.append((start, min(end, len(tokens))))
        if end >= len(tokens):
            break
        # Go on where the last tokens of this window begin, and at least one word further.
        shared = int(np.searchsorted(ends, before + longest - shared_tokens, side="right"))
        start = min(max(shared, start + 1), end)
    return windows


def most_central(windows: Sequence[tuple[int, int]], words: int) -> NDArray[np.int64]:
    """For each word, the window in which it is farthest from an edge that is not the document's: (words,)."""
    best = np.full(words, -1, dtype=np.int64)
    chosen = np.zeros(words, dtype=np.int64)
    for number, (start, end) in enumerate(windows):
        places = np.arange(start, end)
        before = places - start if start else np.full(end - start, words)
        after = end - 1 - places if end < words else np.full(end - start, words)
        distance = np.minimum(before, after)
        better = distance > best[start:end]
        best[start:end][better] = distance[better]
        chosen[start:end][better] = number
    return chosen


def gathered(passages: Sequence[Passage], scores: Sequence[Scores], C: int) -> Scores:
    """The scores of all words of an example, (W, C); a word in two passages is scored where it has the most context.

    An example without passages has no words.
    """
    windows = [(passage.start, passage.start + words_in(passage)) for passage in passages]
    if len(windows) == 1:
        return scores[0]
    W = windows[-1][1] if windows else 0
    chosen = most_central(windows, W)
    found = np.empty((W, C), dtype=np.float32)
    for number, (start, end) in enumerate(windows):
        mine = chosen[start:end] == number
        found[start:end][mine] = scores[number][mine]
    return found


def words_in(passage: Passage) -> int:
    words = passage.text.words if isinstance(passage.text, Marked) else passage.text
    if not isinstance(words, tuple):
        raise TypeError(f"windows are made of words; got a passage of {type(words).__name__}")
    return len(words)
