"""The dev examples that the report shows: where the best row gained and lost, and what every row got wrong or right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.comparison.data import Data
from headstart.metrics import Counts, Metric
from headstart.report.results import Cell, RowFacts, ShownAnswer, ShownExample, TableEntry
from headstart.tasks.shown import Shown

MOST_SHOWN = 8
CLEARLY = 0.5
"""A difference between two scores of one example that shows something."""

Shares = NDArray[np.float64]
"""(R, N): how right each row's answer to each dev example is, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Group:
    """Dev examples with something in common, by number: all of them, and those to choose from."""

    title: str
    members: list[int]
    clear: list[int]
    wanted: int


def shown_examples(
    rows: Sequence[RowFacts], cells: Sequence[Cell], table: Sequence[TableEntry], data: Data
) -> list[ShownExample]:
    """About eight dev examples and the answers to them of each row's best seed, at the most labelled examples.

    The same cells give the same examples. Empty for a task without a view of its examples.
    """
    kept = [cell for row in rows if (cell := best_cell(row.name, data.labels[-1], cells)) is not None]
    if not kept:
        return []
    shares: Shares = np.stack([shares_of(data.task.metric, cell.counts) for cell in kept])
    titles = {row.name: row.title for row in rows}
    groups = groups_of([titles[cell.row] for cell in kept], *compared_rows(kept, table, rows), shares)
    found: list[ShownExample] = []
    for group, count in zip(groups, numbers_shown(groups), strict=True):
        heading = f"{group.title}: {len(group.members):,} of {len(data.dev):,} {data.task.many}"
        for place in chosen(group, count):
            answers: list[Any] = [cell.answers[place] for cell in kept]
            shown = data.task.show(data.dev[place], answers)
            if shown is None:
                return []
            found.append(shown_example(heading, shown, kept, shares[:, place]))
    return found


def shares_of(metric: Metric, counts: Counts) -> NDArray[np.float64]:
    """How right each answer is, (N,). Nothing found where there is nothing to find, such as the roles of a sentence
    without predicates, counts nothing, and is right. counts: (N, M)."""
    return np.where(counts.any(axis=1), metric.value(counts), 1.0)


def best_cell(row: str, labels: int, cells: Sequence[Cell]) -> Cell | None:
    """The one whose model is kept in models/ (`ComparisonFolder.keep_if_best`): of equals, the earlier seed."""
    own = [cell for cell in cells if (cell.row, cell.labels) == (row, labels)]
    return max(own, key=lambda cell: (not cell.collapsed, cell.score), default=None)


def compared_rows(
    kept: Sequence[Cell], table: Sequence[TableEntry], rows: Sequence[RowFacts]
) -> tuple[int, int | None]:
    """The places of the row with the best mean, and of the one it is held against: scratch, else the lowest mean."""
    entries = {(entry.row, entry.labels): entry for entry in table}
    own = [entries[cell.row, cell.labels] for cell in kept]
    best = max(range(len(own)), key=lambda place: (not own[place].is_collapsed, own[place].mean))
    scratch = {row.name for row in rows if row.kind == "scratch"}
    others = [place for place in range(len(own)) if place != best]
    return best, min(others, key=lambda place: (own[place].row not in scratch, own[place].mean), default=None)


def groups_of(titles: Sequence[str], best: int, other: int | None, shares: Shares) -> list[Group]:
    every = "Every row" if len(titles) > 1 else titles[0]
    groups = []
    if other is not None:
        gain = shares[best] - shares[other]
        groups += [
            Group(f"{titles[best]} does better than {titles[other]}", *gained(gain), wanted=3),
            Group(f"{titles[other]} does better than {titles[best]}", *gained(-gain), wanted=1),
        ]
    wrong, right = (np.flatnonzero(found).tolist() for found in (shares.max(axis=0) <= 0, shares.min(axis=0) >= 1))
    return [
        *groups,
        Group(f"{every} is wrong", wrong, wrong, wanted=2),
        Group(f"{every} is right", right, right, wanted=2),
    ]


def gained(difference: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """The examples with any gain, and of them those with a clear one, if there are such."""
    some, clear = (np.flatnonzero(found).tolist() for found in (difference > 0, difference >= CLEARLY))
    return some, clear or some


def numbers_shown(groups: Sequence[Group]) -> list[int]:
    """How many of each group: what is wanted of it, and by turns what other groups have too few for."""
    counts = [min(group.wanted, len(group.clear)) for group in groups]
    left = [len(group.clear) - count for group, count in zip(groups, counts, strict=True)]
    turns = [place for turn in range(MOST_SHOWN) for place, spare in enumerate(left) if turn < spare]
    for place in turns[: MOST_SHOWN - sum(counts)]:
        counts[place] += 1
    return counts


def chosen(group: Group, count: int) -> list[int]:
    """Evenly from the whole of dev, as neighbours in a file are often about the same thing."""
    size = len(group.clear)
    return [group.clear[(2 * turn + 1) * size // (2 * count)] for turn in range(count)]


def shown_example(heading: str, shown: Shown, kept: Sequence[Cell], shares: Shares) -> ShownExample:
    """shares: (R,)"""
    answers = [
        ShownAnswer(cell.row, text.segments, float(right), text.note)
        for cell, text, right in zip(kept, shown.answers, shares, strict=True)
    ]
    return ShownExample(heading, shown.texts, shown.gold, answers)
