"""Labelled examples: read from a file, checked, and drawn from so that few labels are a part of many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headstart.batches.order import seed_of
from headstart.config import nearest
from headstart.errors import ConfigError, DataError
from headstart.tasks.reading import ExamplesConfig, read_labelled
from headstart.tasks.trees import SENTIMENTS
from headstart.text.formats import clean

__all__ = [
    "Examples",
    "ExamplesConfig",
    "check_dev",
    "check_labels",
    "draw",
    "held_out_rows",
    "hold_out",
    "label_names",
    "read_examples",
]

AS_FOUND = ExamplesConfig()
HOLD_OUT_SEED = -1
"""Apart from the seeds of draws, which count from 0."""
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Examples:
    """Texts, each with the name of its class."""

    texts: list[str]
    labels: list[str]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise DataError(
                f"There are {len(self.texts):,} texts and {len(self.labels):,} labels; each text needs one label."
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> Examples:
        """The examples with these numbers, in this order."""
        return Examples([self.texts[row] for row in rows], [self.labels[row] for row in rows])


def read_examples(path: str | Path, config: ExamplesConfig = AS_FOUND) -> Examples:
    """The examples of a csv, tsv, jsonl or parquet file, of sentiment trees (.txt), or of film reviews.

    Reviews are a folder with pos/ and neg/, or a .tar.gz of one; of a folder or archive with train/ and test/, only
    train/ is read. Their labels are "neg" and "pos". Labels are strings: a 1 in JSON is "1", a true is "true".
    """
    path = Path(path).expanduser()
    texts: list[str] = []
    labels: list[str] = []
    for where, text, label in read_labelled(path, config):
        text, label = clean(text).strip(), clean(label).strip()
        if not text or not label:
            missing = "label" if text else "text"
            raise DataError(f"{where}: the {missing} is empty. Fill it in, or remove this example.")
        texts.append(text)
        labels.append(label)
    if not texts:
        raise DataError(f"{path}: holds no example. Give a file with at least one text and its label.")
    return Examples(texts, labels)


def label_names(train: Examples) -> list[str]:
    """The classes in order: numbers by value, sentiments from very negative to very positive, others by name."""
    names = set(train.labels)
    if len(names) < 2:
        only = f"all {len(train):,} have '{min(names)}'" if names else "there is no example"
        raise DataError(f"The training examples need at least two different labels; {only}.")
    if names <= set(SENTIMENTS):
        return sorted(names, key=SENTIMENTS.index)
    if all(INTEGER.fullmatch(name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def draw(train: Examples, count: int | None, seed: int) -> Examples:
    """So many examples, each class in proportion and none left out; None: all. They keep the order of the file.

    The draws of one seed are nested: whatever is in a small one is in every larger one.
    """
    if count is None:
        return train
    classes = len(set(train.labels))
    if count < max(1, classes):
        raise ConfigError(f"Asked for {count:,} labels, but there are {classes:,} classes; each needs at least one.")
    if count > len(train):
        raise DataError(f"Asked for {count:,} labels, the file has {len(train):,}. Ask for fewer, or for all.")
    return train.take(sorted(order_of_draw(train.labels, seed)[:count]))


def order_of_draw(labels: Sequence[str], seed: int) -> list[int]:
    """All rows, ordered so that every beginning has the classes in nearly the proportions of the whole.

    Each class is shuffled and spread evenly from 0 to 1, its j-th of n at (j + 1/2) / n; the first of each class goes
    to the front. Exact quotas for every count (by largest remainder) would at times take a row back as the count grows.
    """
    rows_of: dict[str, list[int]] = {name: [] for name in sorted(set(labels))}
    for row, label in enumerate(labels):
        rows_of[label].append(row)
    placed: list[tuple[bool, float, str, int]] = []
    for name, rows in rows_of.items():
        shuffled = np.random.default_rng(seed_of(seed, "draw", name)).permutation(rows)
        placed += [(j > 0, (j + 0.5) / len(rows), name, int(row)) for j, row in enumerate(shuffled)]
    return [row for *_, row in sorted(placed)]


def hold_out(examples: Examples, share: float) -> tuple[Examples, Examples]:
    """(the rest, the share that is held out): always the same one, with the classes in proportion."""
    held = held_out_rows(examples.labels, share, HOLD_OUT_SEED)
    if not held:
        raise DataError(
            f"There are {len(examples):,} examples, too few to hold some of them out as dev. Give --dev a file."
        )
    return examples.take([row for row in range(len(examples)) if row not in held]), examples.take(sorted(held))


def held_out_rows(labels: Sequence[str], share: float, seed: int) -> set[int]:
    """The same share of every class, at least one example of it, but never its last one."""
    held: set[int] = set()
    if share:
        rng = np.random.default_rng(seed_of(seed, "validation"))
        values = np.array(labels)
        for name in sorted(set(labels)):
            rows = rng.permutation(np.flatnonzero(values == name))
            held.update(rows[: min(max(1, round(share * len(rows))), len(rows) - 1)].tolist())
    return held


def check_labels(examples: Examples, names: list[str], known_to: str) -> None:
    known = set(names)
    for number, label in enumerate(examples.labels, 1):
        if label not in known:
            raise DataError(
                f"Example {number:,} of those to be scored has the label '{label}', which {known_to} never showed."
                f"{nearest(label, names)}"
            )


def check_dev(train: Examples, dev: Examples, names: list[str]) -> list[str]:
    """What to tell about the two files together. A label that training never shows is an error."""
    check_labels(dev, names, "the training examples")
    seen = {folded(text) for text in train.texts}
    both = sum(folded(text) in seen for text in dev.texts)
    if not both:
        return []
    return ["1 dev example also stands in train." if both == 1 else f"{both:,} dev examples also stand in train."]


def folded(text: str) -> str:
    return " ".join(text.split())
