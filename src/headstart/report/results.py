"""The results of a comparison and of a transfer as types, and their form in JSON.

Every score has a name; `metric` says which of them is the primary one, by which rows are ranked. Results written by
the version before, which knew accuracy and macro-F1 only, are read as well, and its keys are still written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from headstart.config import Table
from headstart.errors import CheckpointError
from headstart.metrics import Counts, mean

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
FlatT = TypeVar("FlatT")
OLD_METRIC = "accuracy"
OLD_SCORES = ("accuracy", "macro_f1")


def no_counts() -> Counts:
    return np.empty((0, 0))


def flat(cls: type[FlatT], table: Table) -> FlatT:
    """A dataclass of plain values from the keys that it knows; what a later version adds is left alone."""
    names = {one.name for one in fields(cls)}  # type: ignore[arg-type]
    return cls(**{key: value for key, value in table.items() if key in names})


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """A learned layer mix: the softmaxed weights, which sum to 1, and the scale gamma where there is one."""

    weights: list[float]
    gamma: float | None = None


Mixes = dict[str, LayerWeights]
"""By the mix's place in the model: before the task network (input), after it (output)."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Held-out perplexity of an encoder's language model before and after fine-tuning."""

    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One fit with one seed, and how it did on dev."""

    seed: int
    metric: str
    scores: dict[str, float]
    seconds: float
    steps: int
    best_step: int
    collapsed: bool
    """Every dev example got the same answer."""
    mix: Mixes

    @property
    def score(self) -> float:
        """The primary one."""
        return self.scores[self.metric]

    def as_json(self) -> Table:
        facts = asdict(self)
        return {"seed": facts.pop("seed"), **self.scores, **facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Run):
    """One run of a comparison: a row, fitted to so many labelled examples with one seed."""

    row: str
    labels: int
    parameters: int
    truncated: int
    forgetting: Forgetting | None = None
    counts: Counts = field(default_factory=no_counts, compare=False, repr=False)
    """What the metric counts of every dev example: (N, M)."""
    answers: list[Json] = field(default_factory=list, compare=False, repr=False)
    """What was predicted for every dev example."""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.row, self.labels, self.seed

    def without_answers(self) -> Cell:
        """What results.json keeps of a cell: nothing that grows with the dev set."""
        return replace(self, counts=no_counts(), answers=[])

    def as_json(self) -> Table:
        """The cell's own file; without counts and answers where it has none."""
        facts = asdict(replace(self, counts=no_counts(), answers=[]))
        first = {key: facts.pop(key) for key in ("row", "labels", "seed")}
        del facts["counts"], facts["answers"]
        kept = {"counts": self.counts.tolist(), "answers": self.answers} if len(self.counts) else {}
        return {**first, **self.scores, **facts, **kept}

    @classmethod
    def from_json(cls, table: Table, gold: Table | None = None) -> Cell:
        """gold: the contents of gold.json, for cells of versions that wrote predicted classes and no counts."""
        answered: Table = {}
        if "counts" in table:
            answered = {"counts": np.array(table["counts"], dtype=np.float64), "answers": table["answers"]}
        elif "predicted" in table and gold is not None:
            answered = classified(table["predicted"], table["probabilities"], gold["gold"], gold["names"])
        forgot = table.get("forgetting")
        return flat(
            cls,
            {
                **table,
                **named_scores(table),
                "mix": mixes_from(table["mix"]),
                "forgetting": None if forgot is None else flat(Forgetting, forgot),
                **answered,
            },
        )


def classified(
    predicted: Sequence[int], probabilities: Sequence[Sequence[float]], gold: Sequence[int | str], names: Sequence[str]
) -> Table:
    """Counts of accuracy and answers of a classifier, as fields of a cell; classes are given by number."""
    right = [names[a] == (b if isinstance(b, str) else names[b]) for a, b in zip(predicted, gold, strict=True)]
    answers = [
        {"label": names[label], "probabilities": dict(zip(names, row, strict=True))}
        for label, row in zip(predicted, probabilities, strict=True)
    ]
    return {"counts": np.array([(float(one), 1.0) for one in right]).reshape(-1, 2), "answers": answers}


def named_scores(table: Table) -> Table:
    """ "metric" and "scores" of a run, from before there were such keys too."""
    if "metric" in table:
        return {"metric": table["metric"], "scores": table["scores"]}
    return {"metric": OLD_METRIC, "scores": {name: table[name] for name in OLD_SCORES}}


def mixes_from(table: Table) -> Mixes:
    return {place: flat(LayerWeights, mix) for place, mix in table.items()}


def mean_scores(runs: Sequence[Run]) -> dict[str, float]:
    """The mean over the runs of every score that all of them have."""
    names = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
    return {name: mean([run.scores[name] for run in runs]) for name in names}


def spread_of(scores: Sequence[float]) -> float | None:
    """The standard deviation, which one score alone does not have."""
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else None


@dataclass(frozen=True, slots=True)
class RowFacts:
    """A row of a comparison: an encoder and how it is used. source: where the encoder is; None from scratch."""

    name: str
    title: str
    source: str | None
    kind: str
    how: str
    pretraining_seconds: float | None = None
    pretraining_scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataFacts:
    """A file of labelled examples. classes: how many examples each label has; empty where a task has no classes."""

    path: str
    examples: int
    classes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The score on dev of answers that need no model, such as train's most frequent label for every text."""

    title: str
    score: float
    counts: Counts | None = field(default=None, compare=False, repr=False)
    """Per dev example (N, M), so that rows can be tested against it; not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """One row at one number of labelled examples, over the seeds that are done."""

    row: str
    labels: int
    mean: float
    low: float
    high: float
    spread: float | None
    scores: list[float]
    """The primary score of each seed."""
    means: dict[str, float]
    """The mean of every score, by name."""
    seconds: float
    difference: float | None
    """To the row above, with its p."""
    p: float | None
    collapsed: int
    """How many of the seeds gave one answer to everything."""

    @property
    def is_collapsed(self) -> bool:
        """In most of the seeds: such a row has learned nothing that could be deployed."""
        return 2 * self.collapsed > len(self.scores)

    @classmethod
    def from_json(cls, table: Table) -> TableEntry:
        old = {OLD_METRIC: table["mean"], **{name: table[name] for name in OLD_SCORES if name in table}}
        return flat(cls, {"means": old, **table})


@dataclass(frozen=True, slots=True)
class LabelsSaved:
    """How many labelled examples scratch needs for what a row does with `labels`; equals: None if more than tried."""

    row: str
    labels: int
    equals: int | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Advice:
    """Which row to deploy and where its model is, relative to the results; None for both if no row is worth it."""

    row: str | None
    run: str | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that results.json holds."""

    task: str
    headstart: str
    train: DataFacts
    dev: DataFacts
    labels: list[int]
    """The numbers of labelled examples, ascending."""
    seeds: list[int]
    metric: str
    metric_title: str
    rows: list[RowFacts]
    cells: list[Cell]
    table: list[TableEntry]
    labels_saved: list[LabelsSaved]
    advice: Advice | None
    """None before the first cell is done."""
    baseline: Baseline | None
    """None in results from before there was one."""
    notices: list[str]

    @property
    def titles(self) -> dict[str, str]:
        return {row.name: row.title for row in self.rows}

    def at_most_labels(self) -> list[TableEntry]:
        most = max((entry.labels for entry in self.table), default=0)
        return [entry for entry in self.table if entry.labels == most]

    def as_json(self) -> Table:
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "train": asdict(self.train),
            "dev": asdict(self.dev),
            "rows": [asdict(row) for row in self.rows],
            "cells": [cell.without_answers().as_json() for cell in self.cells],
            "table": [{**entry.means, **asdict(entry)} for entry in self.table],
            "labels_saved": [asdict(saved) for saved in self.labels_saved],
            "advice": asdict(self.advice) if self.advice else {},
            "baseline": baseline_json(self.baseline),
        }

    @classmethod
    def from_json(cls, table: Table) -> Comparison:
        return cls(
            **{key: table[key] for key in ("task", "headstart", "labels", "seeds", "metric", "notices")},
            metric_title=str(table.get("metric_title", table["metric"])),
            train=flat(DataFacts, table["train"]),
            dev=flat(DataFacts, table["dev"]),
            rows=[flat(RowFacts, row) for row in table["rows"]],
            cells=[Cell.from_json(cell) for cell in table["cells"]],
            table=[TableEntry.from_json(entry) for entry in table["table"]],
            labels_saved=[flat(LabelsSaved, saved) for saved in table["labels_saved"]],
            advice=flat(Advice, table["advice"]) if table["advice"] else None,
            baseline=baseline_from(table),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResults:
    """results.json of one transfer: an encoder carried to a task, once for each seed, and which seed was kept."""

    task: str
    source: str
    kind: str
    how: str
    labels: int
    classes: list[str]
    dev: int
    metric: str
    metric_title: str
    runs: list[Run]
    best_seed: int
    truncated: int
    parameters: int
    forgetting: Forgetting | None = None
    baseline: Baseline | None = None
    notices: list[str] = field(default_factory=list)

    @property
    def scores(self) -> list[float]:
        """The primary score of each run."""
        return [run.score for run in self.runs]

    @property
    def mean(self) -> float:
        return mean(self.scores)

    @property
    def spread(self) -> float | None:
        return spread_of(self.scores)

    @property
    def means(self) -> dict[str, float]:
        return mean_scores(self.runs)

    @property
    def best(self) -> Run:
        return next(run for run in self.runs if run.seed == self.best_seed)

    @property
    def mix(self) -> Mixes:
        return self.best.mix

    def as_json(self) -> Table:
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            **self.means,
            "mean": self.mean,
            "means": self.means,
            "spread": self.spread,
            "scores": self.scores,
            "mix": {place: asdict(mix) for place, mix in self.mix.items()},
            "forgetting": None if self.forgetting is None else asdict(self.forgetting),
            "baseline": baseline_json(self.baseline),
            "runs": [run.as_json() for run in self.runs],
        }

    @classmethod
    def from_json(cls, table: Table) -> TransferResults:
        forgot = table.get("forgetting")
        metric = table.get("metric", OLD_METRIC)
        return flat(
            cls,
            {
                "metric_title": metric,
                **table,
                "metric": metric,
                "runs": [
                    flat(Run, {**run, **named_scores(run), "mix": mixes_from(run["mix"])}) for run in table["runs"]
                ],
                "forgetting": None if forgot is None else flat(Forgetting, forgot),
                "baseline": baseline_from(table),
            },
        )


def baseline_json(baseline: Baseline | None) -> Table | None:
    return None if baseline is None else {"title": baseline.title, "score": baseline.score}


def baseline_from(table: Table) -> Baseline | None:
    found = table.get("baseline")
    return None if found is None else flat(Baseline, found)


def read_results(path: Path) -> Comparison:
    """results.json of a comparison, of this version or the one before."""
    try:
        return Comparison.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: is not the results.json of a comparison ({error!r}). Run `headstart compare` again to write it."
        ) from error


def read_cell(text: str, gold: Table | None = None) -> Cell | None:
    """A cell's file; None if it is not whole, so that the cell is fitted again."""
    try:
        return Cell.from_json(json.loads(text), gold)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def budgets_of(entries: Iterable[TableEntry]) -> list[int]:
    """The numbers of labelled examples that have a score."""
    return sorted({entry.labels for entry in entries})
