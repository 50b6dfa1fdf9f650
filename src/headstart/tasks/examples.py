"""Choosing among labelled examples: few that are a part of many, a share held out, duplicates between two files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from headstart.batches.order import seed_of
from headstart.config import Section
from headstart.errors import ConfigError, DataError
from headstart.tasks.base import Task

ExampleT = TypeVar("ExampleT")
HOLD_OUT_SEED = -1
"""Apart from the seeds of draws, which count from 0."""
DEV_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TaskData(Generic[ExampleT]):
    """The labelled examples of a task, read and checked together."""

    task: Task[ExampleT, Any]
    train: list[ExampleT]
    dev: list[ExampleT]
    notices: list[str]


def read_task(kind: type[Task[ExampleT, Any]], train: Path, dev: Path | None, config: Section) -> TaskData[ExampleT]:
    """Both files of a task; without `dev` a tenth of `train` is held out."""
    given = kind.read(train, config)
    task = kind.learn(given)
    if dev is not None:
        held = kind.read(dev, config)
        told = [*kind.notices(train, config), *kind.notices(dev, config), *check_dev(task, given, held)]
        return TaskData(task, given, held, told)
    part, held = hold_out(task, given, DEV_SHARE)
    said = f"No --dev was given: {len(held):,} of the {len(given):,} {kind.many} of {train} are held out as dev."
    return TaskData(task, part, held, [*kind.notices(train, config), said, *check_dev(task, part, held)])


def draw(task: Task[ExampleT, Any], train: list[ExampleT], count: int | None, seed: int) -> list[ExampleT]:
    """So many examples, each class in proportion and none left out; None: all. They keep the order of the file.

    The draws of one seed are nested: a small draw is a part of every larger one.
    """
    if count is None:
        return train
    strata = [task.stratum(example) for example in train]
    classes = len(set(strata))
    if count < max(1, classes):
        raise ConfigError(f"Asked for {count:,} labels, but there are {classes:,} classes; each needs at least one.")
    if count > len(train):
        raise DataError(f"Asked for {count:,} labels, the file has {len(train):,}. Ask for fewer, or for all.")
    return [train[row] for row in sorted(order_of_draw(strata, seed)[:count])]


def order_of_draw(strata: Sequence[str], seed: int) -> list[int]:
    """All rows, ordered so that every prefix has the classes in nearly the proportions of the whole.

    Each class is shuffled and spread evenly from 0 to 1, its j-th of n at (j + 1/2) / n; the first of each class goes
    to the front. Exact quotas for every count (by largest remainder) would at times take a row back as the count grows.
    """
    rows_of: dict[str, list[int]] = {name: [] for name in sorted(set(strata))}
    for row, name in enumerate(strata):
        rows_of[name].append(row)
    placed: list[tuple[bool, float, str, int]] = []
    for name, rows in rows_of.items():
        shuffled = np.random.default_rng(seed_of(seed, "draw", name)).permutation(rows)
        placed += [(j > 0, (j + 0.5) / len(rows), name, int(row)) for j, row in enumerate(shuffled)]
    return [row for *_, row in sorted(placed)]


def hold_out(
    task: Task[ExampleT, Any], examples: list[ExampleT], share: float
) -> tuple[list[ExampleT], list[ExampleT]]:
    """(the rest, the share that is held out): always the same share, with the classes in proportion."""
    held = held_out_rows([task.stratum(example) for example in examples], share, HOLD_OUT_SEED)
    if not held:
        raise DataError(
            f"There are {len(examples):,} {task.many}, too few to hold some of them out as dev. Give --dev a file."
        )
    return [e for row, e in enumerate(examples) if row not in held], [examples[row] for row in sorted(held)]


def held_out_rows(strata: Sequence[str], share: float, seed: int) -> set[int]:
    """The same share of every class, at least one example of it, but never its last one."""
    held: set[int] = set()
    if share:
        rng = np.random.default_rng(seed_of(seed, "validation"))
        values = np.array(strata)
        for name in sorted(set(strata)):
            rows = rng.permutation(np.flatnonzero(values == name))
            held.update(rows[: min(max(1, round(share * len(rows))), len(rows) - 1)].tolist())
    return held


def check_dev(task: Task[ExampleT, Any], train: Sequence[ExampleT], dev: Sequence[ExampleT]) -> list[str]:
    """Notices about the two files together. A label that training never shows is an error."""
    told = task.between(train, dev)
    task.check(dev, "the training examples")
    seen = {folded(task.key(example)) for example in train}
    both = sum(folded(task.key(example)) in seen for example in dev)
    if not both:
        return told
    also = f"1 dev {task.one} also stands in train." if both == 1 else f"{both:,} dev {task.many} also stand in train."
    return [*told, also]


def folded(text: str) -> str:
    return " ".join(text.split())


def content_of(task: Task[ExampleT, Any], examples: Sequence[ExampleT]) -> str:
    """SHA-256 of inputs and gold answers in order; the kind of file they came from does not matter."""
    listed = [[task.key(example) for example in examples], [task.gold(example) for example in examples]]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
