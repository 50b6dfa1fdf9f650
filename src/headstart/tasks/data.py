"""The two sets of examples of a task, read and checked together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headstart.config import pick
from headstart.tasks.examples import Examples, ExamplesConfig, check_dev, hold_out, label_names, read_examples

TASKS = ("sentiment",)
DEV_SHARE = 0.1


def check_task(name: str) -> None:
    pick(dict.fromkeys(TASKS), name, "task")


@dataclass(frozen=True, slots=True)
class TaskData:
    """The labelled examples of a task, read and checked."""

    train: Examples
    dev: Examples
    names: list[str]
    notices: list[str]


def read_task(train: str | Path, dev: str | Path | None, config: ExamplesConfig) -> TaskData:
    given = read_examples(train, config)
    names = label_names(given)
    if dev is None:
        part, held = hold_out(given, DEV_SHARE)
        said = f"No --dev was given: {len(held):,} of the {len(given):,} examples of {train} are held out as dev."
        return TaskData(part, held, names, [said, *check_dev(part, held, names)])
    dev_examples = read_examples(dev, config)
    return TaskData(given, dev_examples, names, check_dev(given, dev_examples, names))
