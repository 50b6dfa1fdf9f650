"""Text classifiers: texts in, labels with probabilities out; and BERTs with a plain head, in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import CheckpointError, DataError
from headstart.model import Model
from headstart.tasks.classify import Classify, Prediction, TextExample
from headstart.text.formats import clean
from headstart.transfer.loading import load_task_model
from headstart.transfer.task_files import save_task_model
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source


@dataclass(frozen=True, slots=True)
class Predictions:
    """labels: the answer to each text. probabilities: (texts, labels). truncated: texts of which only a part was read.

    The labels are the task's own answers: a task with several labels per text joins them in its own way.
    """

    labels: list[str]
    probabilities: NDArray[np.float32]
    truncated: int


@dataclass(frozen=True, slots=True)
class Classifier:
    """A task model of text classification, with the methods that classifiers have."""

    task_model: TaskModel[TextExample, Prediction]

    @property
    def labels(self) -> list[str]:
        return list(self.task_model.task.to_table()["labels"])

    @property
    def model(self) -> Model:
        return self.task_model.model

    def predict(self, texts: Iterable[str]) -> list[str]:
        """The label of each text, the most probable one."""
        return self.read(texts).labels

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """(texts, labels), in the order of `labels`; rows sum to one where a text has one label."""
        return self.read(texts).probabilities

    def read(self, texts: Iterable[str]) -> Predictions:
        if isinstance(texts, str | bytes):
            raise DataError("A list of texts is wanted, and one text was given. Put it in a list.")
        given = list(texts)
        for number, text in enumerate(given, 1):
            if not isinstance(text, str) or not text.strip():
                what = "is empty" if isinstance(text, str) else f"is not a string (got {text!r:.40})"
                raise DataError(f"Text {number} of {len(given)} {what}; there is nothing to classify. Leave it out.")
        found = self.task_model.answers([TextExample(clean(text)) for text in given])
        if not found.answers:
            return Predictions([], np.empty((0, len(self.labels)), np.float32), 0)
        probabilities = np.stack([answer.probabilities for answer in found.answers])
        return Predictions([answer.label for answer in found.answers], probabilities, found.truncated)

    def save(self, path: Path, record: Mapping[str, Any]) -> None:
        save_task_model(self.task_model, path, record)


def load_classifier(path: Source, *, precision: str = "float32") -> Classifier:
    """A classifier that was saved, or a Hugging Face folder of a BERT with a head for classifying texts.

    precision: float32, or int8, in which a BERT is faster and gives nearly the same probabilities.
    """
    loaded = load_task_model(path, precision=precision)
    if not isinstance(loaded.task, Classify):
        raise CheckpointError(f"{path}: is a model for {loaded.task.title}; load it with headstart.load_task_model.")
    return Classifier(loaded)
