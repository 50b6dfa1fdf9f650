"""The words that tell some contexts from others: log-odds with a prior (Monroe, Colaresi and Quinn 2008)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from headstart.text.words import word_spans

WINDOW = 6
"""Words of the context to either side."""
PRIOR = 0.1
"""Of each word's frequency over all contexts, counted as seen on either side before anything is."""
LEAST_Z = 1.0
Context = frozenset[str]


def context_of(sentence: str, start: int, end: int) -> Context:
    """The words around sentence[start:end], in lower case, without what has no letter and English function words.

    Function words often tell clusters apart best, as grammar does; but a reader learns nothing from their names.
    """
    spans = [(first, last) for first, last in word_spans(sentence) if any(map(str.isalpha, sentence[first:last]))]
    before = [sentence[first:last] for first, last in spans if last <= start][-WINDOW:]
    after = [sentence[first:last] for first, last in spans if first >= end][:WINDOW]
    return frozenset(word.lower() for word in before + after).difference(ENGLISH_STOP_WORDS)


def distinctive_words(inside: Sequence[Context], outside: Sequence[Context]) -> tuple[str, ...]:
    """The words that are more frequent inside than outside, the surest first; none if nothing is outside.

    delta_w = log-odds of w inside less outside, each with PRIOR of the common frequency added; a word's place is by
    delta_w / sqrt(1/y_in + 1/y_out), so that neither rare nor merely frequent words come first.
    """
    if not outside:
        return ()
    counts = [Counter(word for context in side for word in context) for side in (inside, outside)]
    words = sorted(counts[0])
    y = np.array([[counted[word] for word in words] for counted in counts], dtype=np.float64)
    sizes = np.array([sum(counted.values()) for counted in counts], dtype=np.float64)[:, None]
    prior, prior_size = PRIOR * y.sum(axis=0), PRIOR * sizes.sum()
    seen = y + prior
    log_odds = np.log(seen) - np.log(np.maximum(sizes + prior_size - seen, np.finfo(np.float64).tiny))
    z = (log_odds[0] - log_odds[1]) / np.sqrt((1 / seen).sum(axis=0))
    order = np.argsort(-z, kind="stable")
    return tuple(words[i] for i in order if z[i] >= LEAST_Z)
