"""The best spans of a context, from the scores of where an answer starts and where it ends.

Letters: U units (words or pieces) of a window, L units in the longest answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

MOST_CANDIDATES = 20
"""Answers that are kept of a question, and of each of its windows."""


@dataclass(frozen=True, slots=True)
class Span:
    """Units start to end of a window, both inclusive."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """Characters start to end of a context, the last one exclusive."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the best answers to a question: text is context[start:end]."""

    text: str
    start: int
    end: int
    probability: float
    score: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question. "No answer" has an empty text, and start = end = -1."""

    text: str
    start: int
    end: int
    probability: float
    score: float
    null_score: float | None
    """The score of no answer; None for a model that always answers."""
    best: tuple[Candidate, ...]
    """The best candidates, the best first."""


def best_spans(start: NDArray[np.floating], end: NDArray[np.floating], most: int, longest: int) -> list[Span]:
    """The `most` spans i..j with the highest start[i] + end[j], where i <= j < i + longest, the best first.

    start, end: (U,). Of equal spans the earlier start goes first, then the shorter. -inf: a unit at which no answer
    starts, or ends. Sums are of 64 bits: those of 32 bits would make ties of spans that differ.
    """
    if most < 1 or longest < 1:
        raise ValueError(f"most and longest must be at least 1; got {most} and {longest}")
    if start.shape != end.shape or start.ndim != 1:
        raise ValueError(f"start and end must both have shape (U,); got {start.shape} and {end.shape}")
    units = len(start)
    if units == 0:
        return []
    longest = min(longest, units)
    ends = np.full(units + longest - 1, -np.inf)
    ends[:units] = end
    # Row i holds the ends i .. i + L - 1, so flat places are ordered by start, then by length, as ties are.
    sums = (start.astype(np.float64)[:, None] + sliding_window_view(ends, longest)).ravel()  # (U * L,)
    most = min(most, len(sums))
    least = np.partition(sums, len(sums) - most)[len(sums) - most]
    # All that tie with the last one are kept until they are sorted: a partition picks any of them.
    places = np.flatnonzero((sums >= least) & (sums > -np.inf))
    places = places[np.argsort(-sums[places], kind="stable")[:most]]
    return [Span(int(at) // longest, int(at) // longest + int(at) % longest, float(sums[at])) for at in places]


def merged(windows: Sequence[Sequence[AnswerSpan]], most: int) -> list[AnswerSpan]:
    """The best answers of all windows of a context, the best first.

    Windows overlap: the same characters found in two of them count once, with the higher score.
    """
    found: dict[tuple[int, int], AnswerSpan] = {}
    for spans in windows:
        for span in spans:
            known = found.get((span.start, span.end))
            if known is None or span.score > known.score:
                found[span.start, span.end] = span
    return sorted(found.values(), key=lambda span: (-span.score, span.start, span.end))[:most]


def probabilities(scores: Sequence[float], null_score: float | None = None) -> NDArray[np.float64]:
    """Softmax over the scores of the best answers, (N,); with the score of no answer, (N + 1,), that one last."""
    values = np.array([*scores] if null_score is None else [*scores, null_score], dtype=np.float64)
    if not len(values):
        return values
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)
