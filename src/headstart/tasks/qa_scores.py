"""Exact match and F1 of answers, equal to SQuAD's official scorers, and the threshold for leaving a question open.

The scorers of SQuAD 1.1 and 2.0 differ only where an answer normalises to nothing, as "the" does:
- 1.1 compares it as it is: two such answers match exactly, but share no word, so their F1 is 0.
- 2.0 drops such gold answers, takes "" as the gold answer if none is left, and gives an F1 of 1 if both are nothing.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headstart.metrics import Metric, mean, share
from headstart.tasks.questions import Version

QA_F1 = Metric("f1", "F1", ("f1", "questions"), share)
HAS_ANSWER, NO_ANSWER = "HasAns", "NoAns"
ARTICLES = re.compile(r"\b(a|an|the)\b")
# Only ASCII: the scorers keep other marks, such as “ ” and –.
PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=1 << 16)
def normalised(answer: str) -> str:
    """An answer as the scorers compare it: without case, punctuation and articles, and with single spaces."""
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact_match(predicted: str, golds: Sequence[str], *, version: Version = "2.0") -> float:
    """1 if the prediction is one of the gold answers, else 0. No gold answers: the right prediction is ""."""
    return max(float(normalised(predicted) == normalised(gold)) for gold in scored_golds(golds, version))


def f1(predicted: str, golds: Sequence[str], *, version: Version = "2.0") -> float:
    """The F1 of the words of the prediction, against the gold answer that gives the highest."""
    return max(word_f1(predicted, gold, version) for gold in scored_golds(golds, version))


def scored_golds(golds: Sequence[str], version: Version) -> Sequence[str]:
    if version == "2.0":
        return [gold for gold in golds if normalised(gold)] or [""]
    if not golds:
        raise ValueError("SQuAD 1.1 has an answer to every question; score questions without answer as version 2.0")
    return golds


def word_f1(predicted: str, gold: str, version: Version) -> float:
    ours, theirs = normalised(predicted).split(), normalised(gold).split()
    if version == "2.0" and not (ours and theirs):
        return float(ours == theirs)
    same = (Counter(ours) & Counter(theirs)).total()
    if same == 0:
        return 0.0
    precision, recall = same / len(ours), same / len(theirs)
    return 2 * precision * recall / (precision + recall)


def by_answer_kind(predicted: Sequence[str], golds: Sequence[Sequence[str]]) -> dict[str, dict[str, float]]:
    """Exact match and F1 of the questions with (HasAns) and without (NoAns) an answer, each if there are any.

    As in SQuAD 2.0's scorer, a question has an answer if the file gives one, even one that normalises to nothing.
    """
    rows: dict[str, list[tuple[float, float]]] = {HAS_ANSWER: [], NO_ANSWER: []}
    for answer, gold in zip(predicted, golds, strict=True):
        rows[HAS_ANSWER if gold else NO_ANSWER].append((exact_match(answer, gold), f1(answer, gold)))
    return {
        kind: {"exact": mean([row[0] for row in of]), "f1": mean([row[1] for row in of]), "questions": len(of)}
        for kind, of in rows.items()
        if of
    }


def best_threshold(scores: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """The threshold that gives the highest mean F1, and that mean; a question is left open if its difference is larger.

    scores: for each question, the score of no answer minus that of the best span, the F1 of that span, and the F1 of
    no answer. The threshold is midway between two differences, so that a small change of the scores changes no answer;
    of equally good ones it is the lowest, as in SQuAD 2.0's scorer. An infinite difference: there is no span.
    """
    if not scores:
        raise ValueError("a threshold needs at least one question")
    table = np.array(scores, dtype=np.float64)
    if np.isnan(table).any() or np.isneginf(table).any():
        raise ValueError("the scores of a threshold must be finite numbers; got nan or -inf")
    difference, answered, unanswered = table[np.argsort(table[:, 0], kind="stable")].T
    spans = int(np.isfinite(difference).sum())
    if spans == 0:
        return 0.0, mean(list(unanswered))
    # totals[k]: the sum of F1 if the k questions with the lowest differences are answered, and the others left open.
    gained = np.concatenate([[0.0], np.cumsum(answered[:spans] - unanswered[:spans])])
    totals = unanswered.sum() + gained
    # Questions with one and the same difference are answered together or not at all.
    cuts = [k for k in range(spans + 1) if k in (0, spans) or difference[k - 1] < difference[k]]
    best = max(cuts, key=lambda k: totals[k])
    if best == 0:
        threshold = float(difference[0]) - 1
    elif best == spans:
        threshold = float(difference[spans - 1]) + 1
    else:
        threshold = between(float(difference[best - 1]), float(difference[best]))
    return threshold, float(totals[best]) / len(scores)


def between(low: float, high: float) -> float:
    """The middle of two numbers. It is never `high`, which neighbouring floats would round it to."""
    middle = low + (high - low) / 2
    return middle if middle < high else low
