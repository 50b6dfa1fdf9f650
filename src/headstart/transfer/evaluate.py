"""Scoring a task model on labelled examples."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import Section, Table
from headstart.progress import Notice, Progress, result_of
from headstart.tasks.base import Task
from headstart.transfer.loading import load_task_model
from headstart.transfer.task_model import Answers, TaskModel
from headstart.weights.sources import Source, labelled_file

ANSWERED_AT_ONCE = 200
"""Examples between two looks at the progress: enough for batches of like length."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The labelled examples of a file with a model's answers to them. task: with the rules that score this file."""

    task: Task[Any, Any]
    path: Path
    examples: list[Any]
    answered: Answers[Any]
    unaided: list[Any] | None = None
    """The answers to the same examples without what the file gives besides the text, where it gives something."""

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        return list(zip(self.examples, self.answered.answers, strict=True))

    def scores(self) -> Table:
        """The task's scores, the primary one first, and its details per label."""
        return {
            "task": self.task.name,
            "metric": self.task.metric.name,
            "examples": len(self.examples),
            **self.task.scores(self.examples, self.answered.answers),
            **(self.task.unaided_scores(self.examples, self.unaided) if self.unaided is not None else {}),
            **self.task.details(self.examples, self.answered.answers),
            "truncated": self.answered.truncated,
        }


def evaluate(
    run: Source,
    data: str | Path,
    examples: Section | None = None,
    *,
    precision: str = "float32",
    task: str | None = None,
) -> Table:
    """The task's scores, the primary one first, and its details per label. precision, task: see `load_task_model`."""
    loaded = load_task_model(run, precision=precision, task=task)
    return result_of(evaluate_model(loaded, data, examples or loaded.task.Input(), run)).scores()


def evaluate_model(
    loaded: TaskModel[Any, Any], data: str | Path, examples: Section, name: Source
) -> Generator[Progress | Notice, None, Evaluated]:
    """name: of the model, for messages."""
    path = yield from labelled_file(data)
    found = loaded.task.read(path, examples)
    task = loaded.task.scoring(found)
    if (note := task.memory_note(loaded.model.head, found)) is not None:
        yield Notice(note)
    task.check(found, f"the training examples of {name}")
    answered = yield from answers_in_parts(loaded, found, "answering")
    bare = [one for example in found if (one := task.unaided(example)) is not None]
    if len(bare) < len(found):
        return Evaluated(task, path, found, answered)
    unaided = yield from answers_in_parts(loaded, bare, "answering unaided")
    return Evaluated(task, path, found, answered, unaided.answers)


def answers_in_parts(
    loaded: TaskModel[Any, Any], examples: Sequence[Any], stage: str
) -> Generator[Progress, None, Answers[Any]]:
    """An example's answer depends on that example alone, so the parts change nothing."""
    answered: Answers[Any] = Answers([], [])
    for first in range(0, len(examples), ANSWERED_AT_ONCE):
        yield Progress(stage, first, len(examples), loaded.task.many)
        part = loaded.answers(examples[first : first + ANSWERED_AT_ONCE])
        answered.answers.extend(part.answers)
        answered.cut.extend(part.cut)
    yield Progress(stage, len(examples), len(examples), loaded.task.many)
    return answered
