"""The labelled examples of a comparison, checked before anything long begins, and what depends on their task."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from headstart.config import Table
from headstart.errors import ConfigError, DataError
from headstart.metrics import ACCURACY, Metric
from headstart.report.results import Baseline, DataFacts
from headstart.tasks.data import read_task
from headstart.tasks.examples import Examples, ExamplesConfig, draw

ALL: Literal["all"] = "all"
Budget = int | Literal["all"]


@dataclass(frozen=True, slots=True)
class Data:
    """Train and dev, the classes, and the draws from train: one for each number of labelled examples and seed."""

    train: Examples
    dev: Examples
    names: list[str]
    notices: list[str]
    labels: list[int]
    seeds: list[int]
    draws: dict[tuple[int, int], Examples]
    metric: Metric = ACCURACY

    @property
    def gold(self) -> list[int]:
        """The class of every dev example."""
        number = {name: i for i, name in enumerate(self.names)}
        return [number[label] for label in self.dev.labels]

    def gold_note(self) -> Table:
        """What gold.json keeps, so that the predictions in the cells can be read without the dev file."""
        return {"names": self.names, "gold": self.gold}

    def texts(self) -> list[str]:
        """Every text that any cell reads, once."""
        drawn = {text: None for examples in self.draws.values() for text in examples.texts}
        return list(drawn | dict.fromkeys(self.dev.texts))


def read_data(
    train_path: Path, dev_path: Path | None, config: ExamplesConfig, labels: Sequence[Budget], seeds: list[int]
) -> Data:
    task = read_task(train_path, dev_path, config)
    train = task.train
    counts = label_counts(labels, len(train), train_path)
    draws = {
        (count, seed): draw(train, count if count < len(train) else None, seed) for count in counts for seed in seeds
    }
    return Data(train, task.dev, task.names, task.notices, counts, seeds, draws)


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


def content_of(examples: Examples) -> str:
    """SHA-256 of texts and labels in order, whatever the format of the file they came from."""
    return hashlib.sha256(json.dumps([examples.texts, examples.labels]).encode()).hexdigest()


def facts_of(examples: Examples, path: Path, names: list[str]) -> DataFacts:
    counts = Counter(examples.labels)
    return DataFacts(path.name, len(examples), {name: counts[name] for name in names})


def baseline_of(data: Data) -> Baseline:
    """Always the most frequent label of train; of equally frequent ones, the first in the order of the classes."""
    counts = Counter(data.train.labels)
    most = max(data.names, key=lambda name: counts[name])
    per_example = np.array([(float(label == most), 1.0) for label in data.dev.labels])
    return Baseline(f"Always '{most}'", data.metric.of(per_example), per_example)
