"""Tasks whose answer is one label per example: text classification, sentence pairs.

A subclass adds how its examples are read, what the encoder reads of them, and the head.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.config import Table, nearest
from headstart.errors import ConfigError, DataError
from headstart.heads.recurrent import Head
from headstart.metrics import ACCURACY, Metric, accuracy, by_class, macro_f1
from headstart.tasks.base import Passage, Scores, Target, Task, Writer, score_lines
from headstart.tasks.prediction_writers import CsvLines, JsonLines, TabLines
from headstart.tasks.shown import AnswerText, Segment, Shown, ShownText, shortened
from headstart.tasks.trees import SENTIMENTS

INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
MOST_CONFUSED = 12
"""Classes up to which the confusion matrix fits a terminal."""


class LabelledExample(Protocol):
    """What `OneLabel` and the writers ask of an example."""

    @property
    def label(self) -> str | None:
        """The name of its class, if that is known."""
        ...

    @property
    def where(self) -> str:
        """Its file and line, for messages; empty where it came from no file."""
        ...

    @property
    def record(self) -> Mapping[str, object] | None:
        """What else its line of the file held."""
        ...

    @property
    def texts(self) -> dict[str, str]:
        """Its texts, under the names that they have in predictions."""
        ...


LabelledT = TypeVar("LabelledT", bound=LabelledExample)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The most probable label, and the probability of every label in the task's order, (C,)."""

    label: str
    probabilities: Scores


@dataclass(frozen=True)
class OneLabel(Task[LabelledT, Prediction], Generic[LabelledT]):
    """labels: the classes in order."""

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise ConfigError(f"A classifier needs two classes or more; got {len(self.labels)}.")

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    def learn(cls, train: Sequence[LabelledT]) -> Self:
        return cls(tuple(label_names(train)))

    @classmethod
    def from_table(cls, table: Table) -> Self:
        return cls(tuple(table["labels"]))

    def to_table(self) -> Table:
        return {"labels": list(self.labels)}

    @property
    def metric(self) -> Metric:
        return ACCURACY

    def check(self, examples: Sequence[LabelledT], known_to: str) -> None:
        known = set(self.labels)
        for number, example in enumerate(examples, 1):
            if example.label not in known:
                place = f"{example.where}:" if example.where else f"Example {number:,} of those to be scored"
                raise DataError(
                    f"{place} has the label '{example.label}', which {known_to} never showed."
                    f"{nearest(str(example.label), self.labels)}"
                )

    @classmethod
    def gold(cls, example: LabelledT) -> str | None:
        return example.label

    @classmethod
    def line(cls, example: LabelledT) -> Table:
        return {**example.texts, "label": example.label}

    @classmethod
    def stratum(cls, example: LabelledT) -> str:
        return str(example.label)

    # --- model --------------------------------------------------------------------------------------------------------

    def targets(self, example: LabelledT, passages: Sequence[Passage]) -> list[Target]:
        return [np.array(self.labels.index(str(example.label)), dtype=np.int64)]

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        # Stacking arrays of no dimension would take longer than a step of a linear head.
        gold = torch.from_numpy(np.fromiter(map(int, targets), np.int64, len(targets))).to(scores.device)
        return F.cross_entropy(scores, gold, reduction="sum")

    def decode(
        self,
        head: Head,
        examples: Sequence[LabelledT],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Prediction]:
        if not scores:
            return []
        logits = torch.from_numpy(np.stack([of_example[0] for of_example in scores]))
        rows: list[Scores] = list(logits.softmax(-1).numpy())
        return [Prediction(self.labels[int(row.argmax())], row) for row in rows]

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: LabelledT, answer: Prediction) -> Sequence[float]:
        return (float(answer.label == example.label), 1.0)

    def scores(self, examples: Sequence[LabelledT], answers: Sequence[Prediction]) -> dict[str, float]:
        gold, predicted = [example.label for example in examples], [answer.label for answer in answers]
        return {"accuracy": accuracy(gold, predicted), "macro_f1": macro_f1(gold, predicted, self.labels)}

    def score_titles(self) -> dict[str, str]:
        return {"accuracy": "accuracy", "macro_f1": "macro-F1"}

    def details(self, examples: Sequence[LabelledT], answers: Sequence[Prediction]) -> Table:
        gold, predicted = [example.label for example in examples], [answer.label for answer in answers]
        pairs = Counter(zip(gold, predicted, strict=True))
        return {
            "labels": dict(zip(self.labels, by_class(gold, predicted, self.labels), strict=True)),
            "confusion": {g: {p: pairs[g, p] for p in self.labels} for g in self.labels},
        }

    def describe(self, details: Table) -> list[str]:
        lines = score_lines("label", details["labels"], ("examples",))
        if len(self.labels) <= MOST_CONFUSED:
            width = max(map(len, ("label", *self.labels)))
            columns = [max(len(name), 6) for name in self.labels]
            heads = "  ".join(f"{name:>{w}}" for name, w in zip(self.labels, columns, strict=True))
            lines += ["", f"{'':<{width}}  {heads}   (rows: gold; columns: predicted)"]
            for gold, row in details["confusion"].items():
                cells = "  ".join(f"{row[p]:>{w},}" for p, w in zip(self.labels, columns, strict=True))
                lines.append(f"{gold:<{width}}  {cells}")
        return lines

    def baseline(self, train: Sequence[LabelledT], examples: Sequence[LabelledT]) -> tuple[str, list[Prediction]]:
        counted = Counter(example.label for example in train)
        # The first of equals in the task's order, so that the choice does not depend on the order of the file.
        most = max(self.labels, key=lambda name: counted[name])
        one_hot = np.array([name == most for name in self.labels], dtype=np.float32)
        return f"always '{most}'", [Prediction(most, one_hot)] * len(examples)

    def collapsed(self, answers: Sequence[Prediction]) -> bool:
        return len(answers) > 1 and len({answer.label for answer in answers}) == 1

    # --- prediction ---------------------------------------------------------------------------------------------------

    def empty_answer(self, example: LabelledT) -> Prediction:
        return Prediction("", np.zeros(len(self.labels), dtype=np.float32))

    def as_json(self, example: LabelledT, answer: Prediction) -> dict[str, Any]:
        values = (round(float(value), 6) for value in answer.probabilities)
        found = {
            "label": answer.label,
            "probabilities": dict(zip(self.labels, values, strict=True)),
            **example.texts,
        }
        return found | {name: value for name, value in (example.record or {}).items() if name not in found}

    def show(self, example: LabelledT, answers: Sequence[Table]) -> Shown:
        texts = [
            ShownText("text" if name == "text" else f"{name} text", [Segment(shortened(text))])
            for name, text in example.texts.items()
        ]
        found = []
        for answer in answers:
            label = answer["label"]
            note = f"probability {100 * answer['probabilities'].get(label, 0.0):.0f} %"
            found.append(AnswerText([Segment(label)], note))
        return Shown(texts, str(example.label), found)

    def writers(self) -> Mapping[str, type[Writer[LabelledT, Prediction]]]:
        return {"tsv": TabLines, "json": JsonLines, "csv": CsvLines}


def label_names(train: Iterable[LabelledExample]) -> list[str]:
    """The classes in order: numbers by value, sentiments from very negative to very positive, others by name."""
    labels = [str(example.label) for example in train]
    names = set(labels)
    if len(names) < 2:
        only = f"all {len(labels):,} have '{min(names)}'" if names else "there is no example"
        raise DataError(f"The training examples need at least two different labels; {only}.")
    if names <= set(SENTIMENTS):
        return sorted(names, key=SENTIMENTS.index)
    if all(INTEGER.fullmatch(name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)
