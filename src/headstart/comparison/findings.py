"""What a comparison found: the table with its intervals, the labelled examples saved, and what to deploy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headstart.comparison.significance import ROUNDS, interval, paired
from headstart.metrics import Counts, Metric, mean
from headstart.report.results import (
    Advice,
    Baseline,
    Cell,
    LabelsSaved,
    RowFacts,
    TableEntry,
    mean_scores,
    spread_of,
)
from headstart.report.wording import CHANCE, percent


@dataclass(frozen=True, slots=True)
class Findings:
    table: list[TableEntry]
    labels_saved: list[LabelsSaved]
    advice: Advice | None
    """None for an empty table."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The cells of a comparison by their keys, and the tests between rows that their counts allow."""

    cells: dict[tuple[str, int, int], Cell]
    metric: Metric
    rounds: int

    def of_row(self, row: str, labels: int) -> list[Cell]:
        return [cell for cell in self.cells.values() if (cell.row, cell.labels) == (row, labels)]

    def between(self, row_a: str, row_b: str, labels: int) -> tuple[float, float] | None:
        """`paired` (b - a) over the seeds that both rows have; None when there is none."""
        seeds = {cell.seed for cell in self.of_row(row_b, labels)}
        both = [cell.seed for cell in self.of_row(row_a, labels) if cell.seed in seeds]
        if not both:
            return None
        a, b = (stacked([self.cells[row, labels, seed] for seed in both]) for row in (row_a, row_b))
        return paired(a, b, self.metric, rounds=self.rounds)

    def beats(self, row: str, labels: int, baseline: Baseline | None) -> bool:
        """Whether a row is better than the baseline by more than chance. There is nothing to beat without one."""
        if baseline is None or baseline.counts is None:
            return True
        counts = stacked(self.of_row(row, labels))
        same_for_every_seed = np.broadcast_to(baseline.counts, counts.shape)
        difference, p = paired(same_for_every_seed, counts, self.metric, rounds=self.rounds)
        return difference > 0 and p < CHANCE


def stacked(cells: Sequence[Cell]) -> Counts:
    """(S, N, M)"""
    return np.stack([cell.counts for cell in cells])


def findings(
    rows: Sequence[RowFacts],
    cells: Sequence[Cell],
    labels: Sequence[int],
    seeds: Sequence[int],
    metric: Metric,
    baseline: Baseline | None = None,
    rounds: int = ROUNDS,
) -> Findings:
    """rows: in the order of the generations. Cells may be missing: a comparison under way."""
    by_key = {cell.key: cell for cell in cells}
    ordered = [(row.name, count, seed) for row in rows for count in labels for seed in seeds]
    evidence = Evidence({key: by_key[key] for key in ordered if key in by_key}, metric, rounds)
    table: list[TableEntry] = []
    for place, row in enumerate(rows):
        above = rows[place - 1].name if place else None
        for count in labels:
            done = evidence.of_row(row.name, count)
            if done:
                table.append(table_entry(done, above, evidence))
    return Findings(table, labels_saved(rows, table, evidence), advice(rows, table, evidence, baseline))


def table_entry(done: Sequence[Cell], above: str | None, evidence: Evidence) -> TableEntry:
    """One row at one number of labelled examples. done: its cells, one for each seed so far."""
    row, labels, _ = done[0].key
    scores = [cell.score for cell in done]
    low, high = interval(stacked(done), evidence.metric, rounds=evidence.rounds)
    against = None if above is None else evidence.between(above, row, labels)
    return TableEntry(
        row=row,
        labels=labels,
        mean=mean(scores),
        low=low,
        high=high,
        spread=spread_of(scores),
        scores=scores,
        means=mean_scores(done),
        seconds=mean([cell.seconds for cell in done]),
        difference=None if against is None else against[0],
        p=None if against is None else against[1],
        collapsed=sum(cell.collapsed for cell in done),
    )


def labels_needed(curve: list[tuple[int, float]], score: float) -> float | None:
    """The labelled examples at which a learning curve [(examples, score)] reaches `score`; None when it never does.

    The curve never falls (running maximum) and is interpolated in the logarithm of the examples. Where its first
    point is there already, that point's number: what fewer examples would do is not known.
    """
    best, last = -math.inf, 0
    for labels, reached in sorted(curve):
        if reached >= score:
            if last == 0 or reached == score:
                return float(labels)
            part = (score - best) / (reached - best)
            return math.exp(math.log(last) + part * (math.log(labels) - math.log(last)))
        best, last = max(best, reached), labels
    return None


def labels_saved(rows: Sequence[RowFacts], table: Sequence[TableEntry], evidence: Evidence) -> list[LabelsSaved]:
    """For each entry of the table: how many labelled examples scratch needs for the same score.

    None are saved where a row is above scratch by no more than chance.
    """
    scratch = next((row.name for row in rows if row.kind == "scratch"), None)
    curve = [(entry.labels, entry.mean) for entry in table if entry.row == scratch]
    titles = {row.name: row.title for row in rows}
    tried = {labels for labels, _ in curve}
    saved = []
    for entry in table:
        if scratch is None or entry.row == scratch or entry.labels not in tried:
            continue
        needed = labels_needed(curve, entry.mean)
        against = evidence.between(scratch, entry.row, entry.labels)
        if against is not None and against[1] >= CHANCE:
            needed = float(entry.labels)
        begins = f"{titles[entry.row]} with {entry.labels:,} labelled examples"
        if needed is None:
            sentence = f"{begins} does more than scratch does with {max(tried):,} (the most tried)."
        elif needed <= entry.labels:
            sentence = f"{begins} is no better than scratch with {entry.labels:,}."
        else:
            sentence = f"{begins} does what scratch does with {round(needed):,}."
        equals = None if needed is None else round(needed)
        saved.append(LabelsSaved(entry.row, entry.labels, equals, sentence))
    return saved


def advice(
    rows: Sequence[RowFacts], table: Sequence[TableEntry], evidence: Evidence, baseline: Baseline | None
) -> Advice | None:
    """What to deploy: the best mean at the most labelled examples, and a simpler row if it is as good.

    A collapsed row is never advised, nor one that does no better than the baseline. None for an empty table.
    """
    if not table:
        return None
    most = max(entry.labels for entry in table)
    last = {entry.row: entry for entry in table if entry.labels == most and not entry.is_collapsed}
    if not last:
        return Advice(
            None,
            None,
            f"Deploy none of these yet: with {most:,} labelled examples every row gives all examples the same answer.",
        )
    best = max(last.values(), key=lambda entry: entry.mean)  # the earlier row of equals
    if baseline is not None and not evidence.beats(best.row, most, baseline):
        return nothing_learned(rows, best, baseline)
    sentence = (
        f"Deploy models/{best.row}: {percent(best.mean)} ({100 * best.low:.1f} to {percent(best.high)}) "
        f"with {most:,} labelled examples."
    )
    other = as_good_and_cheaper(best, [last[row.name] for row in rows if row.name in last], evidence, baseline)
    if other is not None:
        why = "trains faster" if other.seconds < best.seconds else "is simpler"
        sentence += f" models/{other.row} is not worse by more than chance and {why}."
    if len(best.scores) == 1:
        sentence += " There is one seed only, so how much training varies is not known."
    return Advice(best.row, f"models/{best.row}", sentence)


def nothing_learned(rows: Sequence[RowFacts], best: TableEntry, baseline: Baseline) -> Advice:
    title = next(row.title for row in rows if row.name == best.row)
    return Advice(
        None,
        None,
        f"Deploy none of these yet: with {best.labels:,} labelled examples no row is better than the baseline "
        f"({baseline.title}: {percent(baseline.score)}) by more than chance. The best is {title}: {percent(best.mean)}."
        f" More labelled examples may help.",
    )


def as_good_and_cheaper(
    best: TableEntry, ordered: Sequence[TableEntry], evidence: Evidence, baseline: Baseline | None
) -> TableEntry | None:
    """The first row that is simpler (earlier) or faster than the best and not worse by more than chance."""
    for place, entry in enumerate(ordered):
        is_simpler = place < ordered.index(best)
        if entry is best or not (is_simpler or entry.seconds < best.seconds):
            continue
        against = evidence.between(entry.row, best.row, best.labels)
        if against is not None and against[1] > CHANCE and evidence.beats(entry.row, best.labels, baseline):
            return entry
    return None
