"""A context as an encoder reads it: its overlapping windows, and the units of them that an answer covers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from headstart.tasks.base import Passage, Tokenized
from headstart.tasks.questions import GoldAnswer
from headstart.tasks.windows import word_windows

NOWHERE = -1
"""Where an answer begins and ends that is not in the window."""


def first_tokens(text: str, most: int, tokenized: Tokenized) -> tuple[str, int, bool]:
    """As much of a text, from its beginning, as has `most` tokens; how many it has; whether something was cut.

    A text without units, such as a question of control characters, is replaced by a mark: a passage's first unit stands
    for "no answer".
    """
    units = tokenized.units(text)
    if not len(units.spans):
        return "?", 1, False
    cut = False
    while (total := int(units.tokens.sum())) > most and len(units.spans) > 1:
        # What is left may be split otherwise, so that it is counted again.
        kept = min(max(1, int(np.searchsorted(np.cumsum(units.tokens), most, side="right"))), len(units.spans) - 1)
        text, cut = text[: units.spans[kept - 1, 1]], True
        units = tokenized.units(text)
    return text, total, cut


def windows_of(context: str, room: int, tokenized: Tokenized) -> Iterator[tuple[int, str]]:
    """The context, or overlapping windows of it, each with the character at which it begins.

    Windows begin and end between words; only a word that is longer than a window is divided.
    """
    units = tokenized.units(context)
    if not len(units.spans):
        return
    if int(units.tokens.sum()) <= room:
        yield 0, context
        return
    tokens = np.bincount(units.words, weights=units.tokens).astype(np.int64)
    firsts = np.flatnonzero(np.diff(units.words, prepend=-1))
    if int(tokens.max()) > room:
        tokens, firsts = units.tokens, np.arange(len(units.spans))
    lasts = np.append(firsts[1:], len(units.spans)) - 1
    for first, end in word_windows(tokens, room, min(tokenized.stride, room // 2)):
        start, stop = int(units.spans[firsts[first], 0]), int(units.spans[lasts[end - 1], 1])
        yield start, context[start:stop]


def spans_of(passage: Passage) -> NDArray[np.int64]:
    if passage.spans is None:
        raise TypeError("passages of a context tell which characters their units cover; got one that does not")
    return passage.spans


def units_of_answer(spans: NDArray[np.int64], answer: GoldAnswer) -> tuple[int, int]:
    """The first and the last unit of an answer, or NOWHERE if the window does not hold all of it."""
    start, end = answer.start, answer.start + len(answer.text)
    inside = np.flatnonzero((spans[:, 1] > start) & (spans[:, 0] < end))
    if not len(inside) or start < spans[0, 0] or end > spans[-1, 1]:
        return NOWHERE, NOWHERE
    return int(inside[0]), int(inside[-1])
