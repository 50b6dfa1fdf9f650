"""Text classification: one label per text, such as its sentiment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.config import Section, Table, nearest
from headstart.errors import ConfigError, DataError
from headstart.heads.classify import ClassifyHead, ClassifyHeadConfig
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.metrics import ACCURACY, Metric, accuracy, by_class, macro_f1
from headstart.tasks.base import Passage, Scores, Target, Task, Tokenized, Writer, of_class, score_lines
from headstart.tasks.inputs import read_inputs
from headstart.tasks.prediction_writers import CsvLines, JsonLines, TabLines
from headstart.tasks.reading import ExamplesConfig, read_labelled, separator_notice
from headstart.tasks.trees import SENTIMENTS
from headstart.text.formats import clean

INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text with the name of its class, if that is known. record: what else its line of the file held."""

    text: str
    label: str | None = None
    record: Mapping[str, object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The most probable label, and the probability of every label in the task's order, (C,)."""

    label: str
    probabilities: Scores


@dataclass(frozen=True)
class Classify(Task[TextExample, Prediction]):
    """labels: the classes in order."""

    labels: tuple[str, ...]

    name: ClassVar[str] = "classify"
    title: ClassVar[str] = "text classification"
    Network: ClassVar[type[RecurrentConfig]] = ClassifyHeadConfig
    Input: ClassVar[type[Section]] = ExamplesConfig

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise ConfigError(f"A classifier needs two classes or more; got {len(self.labels)}.")

    # --- examples -----------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, config: Section) -> list[TextExample]:
        """A csv, tsv, jsonl or parquet file, sentiment trees (.txt), or film reviews in pos/ and neg/.

        Labels are strings: a 1 in JSON is "1", a true is "true".
        """
        path = Path(path).expanduser()
        examples: list[TextExample] = []
        for where, text, label in read_labelled(path, of_class(ExamplesConfig, config)):
            text, label = clean(text).strip(), clean(label).strip()
            if not text or not label:
                missing = "label" if text else "text"
                raise DataError(f"{where}: the {missing} is empty. Fill it in, or remove this example.")
            examples.append(TextExample(text, label))
        if not examples:
            raise DataError(f"{path}: holds no example. Give a file with at least one text and its label.")
        return examples

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        notice = separator_notice(Path(path).expanduser(), of_class(ExamplesConfig, config))
        return [] if notice is None else [notice]

    @classmethod
    def learn(cls, train: Sequence[TextExample]) -> Self:
        return cls(tuple(label_names(train)))

    @classmethod
    def from_table(cls, table: Table) -> Self:
        return cls(tuple(table["labels"]))

    def to_table(self) -> Table:
        return {"labels": list(self.labels)}

    @property
    def metric(self) -> Metric:
        return ACCURACY

    def check(self, examples: Sequence[TextExample], known_to: str) -> None:
        known = set(self.labels)
        for number, example in enumerate(examples, 1):
            if example.label not in known:
                raise DataError(
                    f"Example {number:,} of those to be scored has the label '{example.label}', which {known_to} never "
                    f"showed.{nearest(str(example.label), self.labels)}"
                )

    @classmethod
    def key(cls, example: TextExample) -> str:
        return example.text

    @classmethod
    def gold(cls, example: TextExample) -> str | None:
        return example.label

    @classmethod
    def stratum(cls, example: TextExample) -> str:
        return str(example.label)

    # --- model --------------------------------------------------------------------------------------------------------

    @classmethod
    def defaults(cls, how: str) -> Table:
        if how in ("finetune", "gradual"):
            return {"network": {"cell": "none", "pool": "mean", "dropout": 0.1}}
        return {}

    def passages(self, example: TextExample, tokenized: Tokenized) -> list[Passage]:
        """One: of a text that is too long, the beginning and the end are read."""
        return [Passage(example.text)]

    def targets(self, example: TextExample, passages: Sequence[Passage]) -> list[Target]:
        return [np.array(self.labels.index(str(example.label)), dtype=np.int64)]

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        return ClassifyHead(inputs, joined, len(self.labels), of_class(ClassifyHeadConfig, config))

    def loss(self, head: Head, scores: Tensor, mask: Tensor, targets: Sequence[Target]) -> Tensor:
        # Stacking arrays of no dimension would take longer than a step of a linear head.
        gold = torch.from_numpy(np.fromiter(map(int, targets), np.int64, len(targets))).to(scores.device)
        return F.cross_entropy(scores, gold, reduction="sum")

    def decode(
        self,
        head: Head,
        examples: Sequence[TextExample],
        passages: Sequence[Sequence[Passage]],
        scores: Sequence[Sequence[Scores]],
    ) -> list[Prediction]:
        if not scores:
            return []
        logits = torch.from_numpy(np.stack([of_example[0] for of_example in scores]))
        rows: list[Scores] = list(logits.softmax(-1).numpy())
        return [Prediction(self.labels[int(row.argmax())], row) for row in rows]

    # --- metric -------------------------------------------------------------------------------------------------------

    def counts(self, example: TextExample, answer: Prediction) -> Sequence[float]:
        return (float(answer.label == example.label), 1.0)

    def scores(self, examples: Sequence[TextExample], answers: Sequence[Prediction]) -> dict[str, float]:
        gold, predicted = [example.label for example in examples], [answer.label for answer in answers]
        return {"accuracy": accuracy(gold, predicted), "macro_f1": macro_f1(gold, predicted, self.labels)}

    def score_titles(self) -> dict[str, str]:
        return {"accuracy": "accuracy", "macro_f1": "macro-F1"}

    def details(self, examples: Sequence[TextExample], answers: Sequence[Prediction]) -> Table:
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

    def baseline(self, train: Sequence[TextExample], examples: Sequence[TextExample]) -> tuple[str, list[Prediction]]:
        counted = Counter(example.label for example in train)
        # The first of equals in the task's order, so that the choice does not depend on the order of the file.
        most = max(self.labels, key=lambda name: counted[name])
        one_hot = np.array([name == most for name in self.labels], dtype=np.float32)
        return f"always '{most}'", [Prediction(most, one_hot)] * len(examples)

    def collapsed(self, answers: Sequence[Prediction]) -> bool:
        return len(answers) > 1 and len({answer.label for answer in answers}) == 1

    # --- prediction ---------------------------------------------------------------------------------------------------

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[TextExample]:
        given = of_class(ExamplesConfig, config)
        for found in read_inputs(source, given.text_field, given.separator):
            yield TextExample(found.text, None, found.record)

    def empty_answer(self, example: TextExample) -> Prediction:
        return Prediction("", np.zeros(len(self.labels), dtype=np.float32))

    def as_json(self, example: TextExample, answer: Prediction) -> dict[str, Any]:
        values = (round(float(value), 6) for value in answer.probabilities)
        return {
            "label": answer.label,
            "probabilities": dict(zip(self.labels, values, strict=True)),
            "text": example.text,
            **{name: value for name, value in (example.record or {}).items() if name not in RESERVED},
        }

    def writers(self) -> Mapping[str, type[Writer[TextExample, Prediction]]]:
        return {"tsv": TabLines, "json": JsonLines, "csv": CsvLines}


MOST_CONFUSED = 12
"""Classes up to which the confusion matrix fits a terminal."""
RESERVED = ("label", "probabilities", "text")


def label_names(train: Iterable[TextExample]) -> list[str]:
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
