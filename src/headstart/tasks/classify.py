"""Text classification: one label per text, such as its sentiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from headstart.config import Section, Table
from headstart.errors import DataError
from headstart.heads.classify import ClassifyHead, ClassifyHeadConfig
from headstart.heads.recurrent import Head, RecurrentConfig
from headstart.tasks.base import Passage, Tokenized, of_class
from headstart.tasks.inputs import read_inputs
from headstart.tasks.labels import OneLabel, Prediction, label_names
from headstart.tasks.reading import ExamplesConfig, filled, read_labelled, separator_notice
from headstart.text.formats import clean

__all__ = ["Classify", "Prediction", "TextExample", "label_names"]


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text with the name of its class, if that is known. record: what else its line of the file held.

    where: its file and line, for messages.
    """

    text: str
    label: str | None = None
    record: Mapping[str, object] | None = field(default=None, compare=False)
    where: str = field(default="", compare=False)

    @property
    def texts(self) -> dict[str, str]:
        return {"text": self.text}


@dataclass(frozen=True)
class Classify(OneLabel[TextExample]):
    """labels: the classes in order."""

    name: ClassVar[str] = "classify"
    title: ClassVar[str] = "text classification"
    Network: ClassVar[type[RecurrentConfig]] = ClassifyHeadConfig
    Input: ClassVar[type[Section]] = ExamplesConfig

    @classmethod
    def read(cls, path: Path, config: Section) -> list[TextExample]:
        """A csv, tsv, jsonl or parquet file, sentiment trees (.txt), or film reviews in pos/ and neg/.

        Labels are strings: a 1 in JSON is "1", a true is "true".
        """
        path = Path(path).expanduser()
        examples: list[TextExample] = []
        for where, text, label in read_labelled(path, of_class(ExamplesConfig, config)):
            text, label = filled(text, "text", where), filled(label, "label", where)
            examples.append(TextExample(text, label, where=where))
        if not examples:
            raise DataError(f"{path}: holds no example. Give a file with at least one text and its label.")
        return examples

    @classmethod
    def notices(cls, path: Path, config: Section) -> list[str]:
        notice = separator_notice(Path(path).expanduser(), of_class(ExamplesConfig, config))
        return [] if notice is None else [notice]

    @classmethod
    def key(cls, example: TextExample) -> str:
        return example.text

    @classmethod
    def defaults(cls, how: str, joins: bool = False) -> Table:
        if how in ("finetune", "gradual"):
            return {"network": {"cell": "none", "pool": "mean", "dropout": 0.1}}
        return {}

    def passages(self, example: TextExample, tokenized: Tokenized) -> list[Passage]:
        """One: of a text that is too long, the beginning and the end are read."""
        return [Passage(example.text)]

    def head(self, inputs: int, joined: int, config: RecurrentConfig) -> Head:
        return ClassifyHead(inputs, joined, len(self.labels), of_class(ClassifyHeadConfig, config))

    @classmethod
    def read_inputs(cls, source: str, config: Section) -> Iterator[TextExample]:
        given = of_class(ExamplesConfig, config)
        for found in read_inputs(source, given.text_field, given.separator):
            yield TextExample(found.text, None, found.record, found.where)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> list[TextExample]:
        return [TextExample(clean(texts["text"]))]
