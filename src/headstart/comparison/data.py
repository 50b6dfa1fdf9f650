"""The labelled examples of a comparison, checked before anything long begins."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headstart.config import Table
from headstart.errors import ConfigError, DataError
from headstart.tasks.data import read_task
from headstart.tasks.examples import Examples, ExamplesConfig, draw

ALL: Literal["all"] = "all"
Budget = int | Literal["all"]


@dataclass(frozen=True, slots=True)
class Data:
    """Train and dev, the classes, and the draws from train: one for each budget of labels and seed."""

    train: Examples
    dev: Examples
    names: list[str]
    notices: list[str]
    labels: list[int]
    seeds: list[int]
    draws: dict[tuple[int, int], Examples]

    @property
    def gold(self) -> list[int]:
        """The class of every dev example."""
        number = {name: i for i, name in enumerate(self.names)}
        return [number[label] for label in self.dev.labels]

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
        raise ConfigError("--labels names no budget: give numbers of labels, such as 50,200,all.")
    for count in labels:
        if count != ALL and (isinstance(count, bool) or not isinstance(count, int) or count < 2):
            raise ConfigError(f"--labels takes numbers of labels from 2 on, or 'all', such as 50,200,all; got {count}.")


def label_counts(labels: Sequence[Budget], available: int, path: Path) -> list[int]:
    """Sorted, each once, "all" as the number it stands for."""
    counts = sorted({available if count == ALL else count for count in labels})
    if counts[-1] > available:
        raise DataError(
            f"{path}: has {available:,} examples, fewer than the {counts[-1]:,} that --labels asks for. "
            f"Ask for at most {available:,}, or for 'all'."
        )
    return counts


def content_of(examples: Examples) -> str:
    """SHA-256 of texts and labels in order; the kind of file they came from does not matter."""
    return hashlib.sha256(json.dumps([examples.texts, examples.labels]).encode()).hexdigest()


def facts_of(examples: Examples, path: Path, names: list[str]) -> Table:
    counts = Counter(examples.labels)
    return {"path": path.name, "examples": len(examples), "classes": {name: counts[name] for name in names}}
