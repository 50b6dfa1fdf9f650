"""The results of a transfer and of a comparison, as types. `results_json` reads and writes their files.

Every score has a name; `metric` says which of them is the primary one, by which rows are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headstart.metrics import Counts, mean
from headstart.tasks.shown import Segment, ShownText

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


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


@dataclass(frozen=True, slots=True)
class Baseline:
    """The score on dev of answers that need no model, such as train's most frequent label for every example."""

    title: str
    score: float
    counts: Counts | None = field(default=None, compare=False, repr=False)
    """Per dev example (N, M), so that rows can be tested against it; not written."""


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
    curve: list[tuple[int, float]] = field(default_factory=list)
    """(step, score on some of dev) of every evaluation on the way; empty in results from before it was kept."""

    @property
    def score(self) -> float:
        """The primary one."""
        return self.scores[self.metric]


def mean_scores(runs: Sequence[Run]) -> dict[str, float]:
    """The mean over the runs of every score that all of them have."""
    names = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
    return {name: mean([run.scores[name] for run in runs]) for name in names}


def spread_of(scores: Sequence[float]) -> float | None:
    """The standard deviation, which one score alone does not have."""
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResults:
    """An encoder carried to a task, once for each seed, and which seed was kept."""

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


def no_counts() -> Counts:
    return np.empty((0, 0))


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
    shortfalls: list[str] = field(default_factory=list)
    """Why its encoder got less training than it was meant to."""


@dataclass(frozen=True, slots=True)
class DataFacts:
    """A file of labelled examples. classes: how many examples each label has; empty where a task has no classes."""

    path: str
    examples: int
    classes: dict[str, int] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """What a row answered to an example. right: how right that is, from 0 to 1; note: such as its probability."""

    row: str
    segments: list[Segment]
    right: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A dev example with its gold answer, and every row's answer. group: why it is shown; neighbours share it."""

    group: str
    texts: list[ShownText]
    gold: str
    answers: list[ShownAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every run of a comparison, the table made of them, and what it says."""

    task: str
    task_title: str
    """What people call it, such as "text classification"."""
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
    examples: list[ShownExample] = field(default_factory=list)
    """Answered by each row's best seed, with the most labelled examples; empty where the task shows none."""

    @property
    def titles(self) -> dict[str, str]:
        return {row.name: row.title for row in self.rows}

    @property
    def budgets(self) -> list[int]:
        """The numbers of labelled examples that have a score, ascending."""
        return sorted({entry.labels for entry in self.table})

    def with_most_labels(self) -> list[TableEntry]:
        """The entries of the largest of the budgets."""
        most = max(self.budgets, default=0)
        return [entry for entry in self.table if entry.labels == most]
