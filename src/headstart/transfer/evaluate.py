"""Scoring a task model on labelled examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headstart.config import Section, Table
from headstart.progress import result_of
from headstart.transfer.loading import load_task_model
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source, labelled_file


def evaluate(run: Source, data: str | Path, examples: Section | None = None, *, precision: str = "float32") -> Table:
    """The task's scores, the primary one first, and its details per label. precision: see `load_task_model`."""
    loaded = load_task_model(run, precision=precision)
    return evaluate_model(loaded, data, examples or loaded.task.Input(), run)


def evaluate_model(loaded: TaskModel[Any, Any], data: str | Path, examples: Section, name: Source) -> Table:
    """name: of the model, for messages."""
    task = loaded.task
    found = task.read(result_of(labelled_file(data)), examples)
    task.check(found, f"the training examples of {name}")
    answered = loaded.answers(found)
    return {
        "task": task.name,
        "metric": task.metric.name,
        "examples": len(found),
        **task.scores(found, answered.answers),
        **task.details(found, answered.answers),
        "truncated": answered.truncated,
    }
