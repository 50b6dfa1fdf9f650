"""Sentences with a marked predicate: which words are read with it, and which parts of its arguments they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.batches.rows import Marked
from headstart.tasks.base import Passage
from headstart.tasks.spans import Span


def marked(passage: Passage) -> Marked:
    if not isinstance(passage.text, Marked):
        raise TypeError(f"roles are read from marked sentences; got a passage of {type(passage.text).__name__}")
    return passage.text


def is_marked(passage: Passage) -> bool:
    text = marked(passage)
    return text.end > text.first


def window_around(word: int, tokens: NDArray[np.int64], longest: int) -> tuple[int, int]:
    """(first word, end) of the words around one that have `longest` tokens at most, or of that word alone; as much
    before it as behind it, or more where the other side has no word that fits. tokens: of each word, one at least."""
    ends = np.cumsum(tokens)
    begins, total = ends - tokens, int(ends[-1])
    around = max(0, longest - int(tokens[word])) // 2
    left = min(int(begins[word]) - around, total - longest)
    start = min(word, int(np.searchsorted(begins, left, side="left")))
    end = max(word + 1, int(np.searchsorted(ends, begins[start] + longest, side="right")))
    # A long word behind the window leaves room before it.
    return min(start, int(np.searchsorted(begins, ends[end - 1] - longest, side="left"))), end


def within(arguments: Sequence[Span], start: int, end: int) -> list[Span]:
    """The parts of arguments that a window holds, counted from its first word."""
    kept = (Span(max(a.start, start) - start, min(a.end, end) - start, a.type) for a in arguments)
    return [argument for argument in kept if argument.start < argument.end]
