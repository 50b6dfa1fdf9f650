"""The scores of semantic role labelling, as srl-eval.pl, the scorer of CoNLL-2005, defines them.

- An argument is right if its predicate, its role and all its words are.
- V, the predicate itself, is left out of the total.
- C-X is a further part of the last X before it, and both are one argument, right only as a whole. A C-X without an X
  before it is read as X.
- R-X is an argument of its own.

One rule differs: srl-eval.pl passes over predicates that are predicted but not gold. Here their arguments are predicted
ones, all wrong, so that a model that finds its own predicates gains nothing from finding too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence, Set
from typing import NamedTuple

from headstart.config import Table
from headstart.metrics import Metric, f1_of
from headstart.tasks.roles import CONTINUATION, VERB, Predicate
from headstart.tasks.spans import Span
from headstart.tasks.tag_scores import EntityCounts, summed_counts

ROLE_F1 = Metric("f1", "argument F1", ("right", "predicted", "gold"), f1_of)
PREDICATE_F1 = Metric("predicate_f1", "predicate F1", ("right", "predicted", "gold"), f1_of)
AllPredicates = Sequence[Sequence[Predicate]]
"""The predicates of each sentence."""


class Argument(NamedTuple):
    """An argument of the predicate at a word, with all its parts (start, end), in order."""

    predicate: int
    role: str
    parts: tuple[tuple[int, int], ...]


def role_counts(gold: Sequence[Predicate], predicted: Sequence[Predicate]) -> EntityCounts:
    """The arguments of one sentence: right, predicted and gold ones."""
    return counts_of(without_verbs(arguments_in(gold)), without_verbs(arguments_in(predicted)))


def predicate_counts(gold: Sequence[Predicate], predicted: Sequence[Predicate]) -> EntityCounts:
    """The predicates of one sentence that were found, whatever their arguments are."""
    return counts_of({one.word for one in gold}, {one.word for one in predicted})


def perfect_counts(gold: Sequence[Predicate], predicted: Sequence[Predicate]) -> tuple[int, int]:
    """(gold predicates of one sentence that were found with exactly their arguments, gold predicates)."""
    found = {one.word: without_verbs(arguments_in([one])) for one in predicted}
    return sum(found.get(one.word) == without_verbs(arguments_in([one])) for one in gold), len(gold)


def score_titles() -> dict[str, str]:
    return {"f1": "argument F1", "precision": "precision", "recall": "recall", "predicate_f1": "predicate F1"}


def headline_scores(gold: AllPredicates, predicted: AllPredicates) -> dict[str, float]:
    """Those that `score_titles` names. The predicate F1 is 1 where the gold predicates were given."""
    pairs = list(zip(gold, predicted, strict=True))
    total = summed_counts(role_counts(*pair) for pair in pairs)
    predicates = summed_counts(predicate_counts(*pair) for pair in pairs)
    return {"f1": total.f1, "precision": total.precision, "recall": total.recall, "predicate_f1": predicates.f1}


def scores_by_role(gold: AllPredicates, predicted: AllPredicates) -> Table:
    """Precision, recall, F1 and counts of each role that occurs in either; V, which the total leaves out, is last."""
    counters: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    for some, others in zip(gold, predicted, strict=True):
        wanted, given = arguments_in(some), arguments_in(others)
        for counter, arguments in zip(counters, (wanted & given, given, wanted), strict=True):
            counter.update(argument.role for argument in arguments)
    right, found, there = counters
    roles = sorted(found | there, key=lambda role: (role == VERB, role))
    return {role: EntityCounts(right[role], found[role], there[role]).table() for role in roles}


def arguments_in(predicates: Iterable[Predicate]) -> set[Argument]:
    """Every argument of some predicates, V among them. Two that are equal count once."""
    found: set[Argument] = set()
    for predicate in predicates:
        if predicate.arguments is None:
            raise ValueError(f"the arguments of the predicate at word {predicate.word} are not known")
        found |= {Argument(predicate.word, role, parts) for role, parts in joined(predicate.arguments)}
    return found


def joined(arguments: Iterable[Span]) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    """The arguments of one predicate, (role, parts), each continuation with what it continues."""
    found: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for start, end, role in sorted(set(arguments)):
        name = role.removeprefix(CONTINUATION)
        if name != role and name in latest:
            latest[name].append((start, end))
        else:
            latest[name] = [(start, end)]
            found.append((name, latest[name]))
    return [(role, tuple(parts)) for role, parts in found]


def without_verbs(arguments: set[Argument]) -> set[Argument]:
    return {argument for argument in arguments if argument.role != VERB}


def counts_of(gold: Set[Hashable], predicted: Set[Hashable]) -> EntityCounts:
    return EntityCounts(len(gold & predicted), len(predicted), len(gold))
