"""The labelled examples of a comparison, checked before anything long begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headstart.config import Section, Table
from headstart.errors import ConfigError, DataError
from headstart.report.results import Baseline, DataFacts
from headstart.tasks.base import Task
from headstart.tasks.examples import draw, read_task

ALL: Literal["all"] = "all"
Budget = int | Literal["all"]


@dataclass(frozen=True, slots=True)
class Data:
    """A task with its train and dev examples, and the draws from train: one for each number of examples and seed."""

    task: Task[Any, Any]
    train: list[Any]
    dev: list[Any]
    notices: list[str]
    labels: list[int]
    seeds: list[int]
    draws: dict[tuple[int, int], list[Any]]

    def gold_note(self) -> Table:
        """What gold.json keeps, so that the answers in the cells can be read without the dev file."""
        return {
            "names": self.task.class_names,
            "gold": [self.task.gold(example) for example in self.dev],
        }

    def examples(self) -> list[Any]:
        """Every example that any cell reads, once, in a fixed order."""
        drawn = [example for examples in self.draws.values() for example in examples]
        return list({id(example): example for example in [*drawn, *self.dev]}.values())


def read_data(
    kind: type[Task[Any, Any]],
    train_path: Path,
    dev_path: Path | None,
    config: Section,
    labels: Sequence[Budget],
    seeds: list[int],
) -> Data:
    data = read_task(kind, train_path, dev_path, config)
    counts = label_counts(labels, len(data.train), train_path)
    draws = {
        (count, seed): draw(data.task, data.train, count if count < len(data.train) else None, seed)
        for count in counts
        for seed in seeds
    }
    return Data(data.task, data.train, data.dev, data.notices, counts, seeds, draws)


def check_labels(labels: Sequence[Budget]) -> None:
    if not labels:
        raise ConfigError("--labels is empty: give numbers of labelled examples, such as 50,200,all.")
    for count in labels:
        if count != ALL and (isinstance(count, bool) or not isinstance(count, int) or count < 2):
            raise ConfigError(
                f"--labels takes numbers of labelled examples, 2 or more, or 'all', such as 50,200,all; got {count}."
            )


def label_counts(labels: Sequence[Budget], available: int, path: Path) -> list[int]:
    """Ascending, each once, "all" as the number it stands for."""
    counts = sorted({available if count == ALL else count for count in labels})
    if counts[-1] > available:
        raise DataError(
            f"{path}: has {available:,} examples, fewer than the {counts[-1]:,} that --labels asks for. "
            f"Ask for at most {available:,}, or for 'all'."
        )
    return counts


def facts_of(task: Task[Any, Any], examples: Sequence[Any], path: Path) -> DataFacts:
    """classes: how many examples each stratum has, where the task has any."""
    counts = Counter(task.stratum(example) for example in examples)
    names = [name for name in task.class_names if name in counts]
    return DataFacts(path.name, len(examples), {name: counts[name] for name in names})


def baseline_of(data: Data) -> Baseline:
    """The task's own, from the most labelled examples that the rows get: what no model should fall below."""
    title, answers = data.task.baseline(data.draws[data.labels[-1], data.seeds[0]], data.dev)
    counts = data.task.all_counts(data.dev, answers)
    return Baseline(title[:1].upper() + title[1:], data.task.metric.of(counts), counts)
