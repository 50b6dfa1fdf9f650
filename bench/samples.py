"""The real text that the works read."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.works import CONLL_DEV, CONLL_TRAIN, SST_DEV, SST_TRAIN
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.reading import ExamplesConfig
from headstart.tasks.tag import Tag
from headstart.tasks.tag_inputs import TagInputConfig


def sst_train(data: Path) -> list[TextExample]:
    """SST-2: sentences that are not neutral."""
    return Classify.read(data / SST_TRAIN, ExamplesConfig(labels_as=2))


def sst_dev(data: Path) -> list[TextExample]:
    return Classify.read(data / SST_DEV, ExamplesConfig(labels_as=2))


def texts_of(examples: Sequence[TextExample]) -> list[str]:
    return [example.text for example in examples]


def conll_train(data: Path) -> list[TaggedSentence]:
    """CoNLL-2003: sentences of news with the names of people, places, organisations and others."""
    return Tag.read(data / CONLL_TRAIN, TagInputConfig())


def conll_dev(data: Path) -> list[TaggedSentence]:
    return Tag.read(data / CONLL_DEV, TagInputConfig())


def lines(path: Path) -> Iterator[str]:
    """A gzipped text, document by document."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from file
