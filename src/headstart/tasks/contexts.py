"""A context as an encoder reads it: its overlapping windows, the units of them that an answer covers, and the answers
that their scores tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from headstart.tasks.answer_search import MOST_CANDIDATES, AnswerSpan, best_spans
from headstart.tasks.base import Passage, Scores, Tokenized
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


def splits_word(context: str, place: int) -> bool:
    """Whether letters, or digits, stand on both sides of a place. Letters without case count as words of their own, as
    scripts without spaces have them; so do the parts of "Twain's" and "5m", which SQuAD's answers end between."""
    if not 0 < place < len(context):
        return False
    before, behind = context[place - 1], context[place]
    return (is_cased(before) and is_cased(behind)) or (before.isdigit() and behind.isdigit())


def is_cased(letter: str) -> bool:
    return letter.lower() != letter.upper()


def candidates(passage: Passage, scores: Scores, longest: int, context: str) -> tuple[list[AnswerSpan], float]:
    """The best answers in one window, and the score of there being none. scores: (W, 2), the context's units last.

    Scores are logarithms of probabilities within the window, so that those of several windows can be compared. Pieces
    are scored, but an answer is made of whole words ("storage", and not "rage").
    """
    spans = spans_of(passage)
    kept = np.concatenate([scores[:1], scores[len(scores) - len(spans) :]]).astype(np.float64)
    kept -= np.logaddexp.reduce(kept, axis=0)
    splits = np.array([[splits_word(context, int(place)) for place in span] for span in spans]).reshape(-1, 2)
    units = np.where(splits, -np.inf, kept[1:])
    found = best_spans(units[:, 0], units[:, 1], MOST_CANDIDATES, longest)
    found = found or best_spans(kept[1:, 0], kept[1:, 1], MOST_CANDIDATES, longest)
    return [AnswerSpan(int(spans[s.start, 0]), int(spans[s.end, 1]), s.score) for s in found], float(kept[0].sum())
