"""Scoring a classifier on labelled examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headstart.config import Table
from headstart.metrics import accuracy, by_class, macro_f1
from headstart.progress import result_of
from headstart.tasks.examples import ExamplesConfig, check_labels, read_examples
from headstart.transfer.task_model import load_classifier
from headstart.weights.sources import Source, labelled_file


def evaluate(
    run: Source, data: str | Path, examples: ExamplesConfig | None = None, *, precision: str = "float32"
) -> Table:
    """Accuracy and macro-F1, and precision, recall, F1 and count per label. precision: see `load_classifier`."""
    classifier = load_classifier(run, precision=precision)
    found = read_examples(result_of(labelled_file(data)), examples or ExamplesConfig())
    check_labels(found, classifier.labels, f"the training examples of {run}")
    predictions = classifier.read(found.texts)
    predicted = predictions.probabilities.argmax(1)
    index = {name: number for number, name in enumerate(classifier.labels)}
    gold = np.array([index[label] for label in found.labels])
    classes = range(len(classifier.labels))
    return {
        "examples": len(found),
        "accuracy": accuracy(gold, predicted),
        "macro_f1": macro_f1(gold, predicted, classes),
        "labels": dict(zip(classifier.labels, by_class(gold, predicted, classes), strict=True)),
        "truncated": predictions.truncated,
    }
