"""The scores of tagging: entities, counted as conlleval counts them, or the words of plain tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headstart.config import Table
from headstart.metrics import ACCURACY, Metric, f1_of
from headstart.tasks.spans import Scheme, Span, spans_of

ENTITY_F1 = Metric("f1", "entity F1", ("right", "predicted", "gold"), f1_of)
TAG_ACCURACY = Metric("accuracy", "tag accuracy", ("right", "words"), ACCURACY.value)
AllTags = Sequence[Sequence[str]]
"""The tags of each sentence."""


def score_titles(scheme: Scheme) -> dict[str, str]:
    if scheme == "plain":
        return {"accuracy": "tag accuracy"}
    return {"f1": "entity F1", "precision": "precision", "recall": "recall", "accuracy": "tag accuracy"}


def headline_scores(gold: AllTags, predicted: AllTags, scheme: Scheme) -> dict[str, float]:
    """Those that `score_titles` names."""
    pairs = [accuracy_counts(a, b) for a, b in zip(gold, predicted, strict=True)]
    accuracy = sum(right for right, _ in pairs) / max(1, sum(words for _, words in pairs))
    if scheme == "plain":
        return {"accuracy": accuracy}
    total = summed_counts(counts_by_type(gold, predicted).values())
    return {"f1": total.f1, "precision": total.precision, "recall": total.recall, "accuracy": accuracy}


def scores_by_type(gold: AllTags, predicted: AllTags, scheme: Scheme) -> Table:
    """Precision, recall, F1 and counts of each type of entity, or of each plain tag."""
    found = counts_by_tag(gold, predicted) if scheme == "plain" else counts_by_type(gold, predicted)
    return {name: counts.table() for name, counts in found.items()}


class EntityCounts(NamedTuple):
    """Entities that were predicted exactly (same words, same type), all predicted ones, all gold ones.

    Of plain tags, every word counts as an entity.
    """

    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        both = self.predicted + self.gold
        return 2 * self.right / both if both else 0.0

    def table(self) -> dict[str, float]:
        shares = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**shares, "gold": self.gold, "predicted": self.predicted}


def entity_counts(gold: Sequence[str], predicted: Sequence[str]) -> EntityCounts:
    """The counts of one sentence."""
    right, given, wanted = (len(spans) for spans in matched(gold, predicted))
    return EntityCounts(right, given, wanted)


def counts_by_type(gold: AllTags, predicted: AllTags) -> dict[str, EntityCounts]:
    """The counts of all sentences for each type that occurs in either, in the order of their names."""
    counters: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    for wanted, given in zip(gold, predicted, strict=True):
        for counter, spans in zip(counters, matched(wanted, given), strict=True):
            counter.update(span.type for span in spans)
    right, found, there = counters
    return {type: EntityCounts(right[type], found[type], there[type]) for type in sorted(found | there)}


def counts_by_tag(gold: AllTags, predicted: AllTags) -> dict[str, EntityCounts]:
    """The counts of all words for each plain tag that occurs in either."""
    pairs = [(g, p) for a, b in zip(gold, predicted, strict=True) for g, p in zip(a, b, strict=True)]
    right = Counter(g for g, p in pairs if g == p)
    there, found = Counter(g for g, _ in pairs), Counter(p for _, p in pairs)
    return {tag: EntityCounts(right[tag], found[tag], there[tag]) for tag in sorted(found | there)}


def summed_counts(counts: Iterable[EntityCounts]) -> EntityCounts:
    rows = list(counts)
    return EntityCounts(sum(c.right for c in rows), sum(c.predicted for c in rows), sum(c.gold for c in rows))


def matched(gold: Sequence[str], predicted: Sequence[str]) -> tuple[set[Span], set[Span], set[Span]]:
    check_lengths(gold, predicted)
    wanted, given = set(spans_of(gold)), set(spans_of(predicted))
    return wanted & given, given, wanted


def accuracy_counts(gold: Sequence[str], predicted: Sequence[str]) -> tuple[int, int]:
    """(words with the right tag, words) of one sentence."""
    check_lengths(gold, predicted)
    return sum(a == b for a, b in zip(gold, predicted, strict=True)), len(gold)


def check_lengths(gold: Sequence[str], predicted: Sequence[str]) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"a sentence has {len(gold)} gold tags and {len(predicted)} predicted ones")
