"""The real text that the works read."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.works import (
    CONLL_DEV,
    CONLL_TRAIN,
    NEW_WIKI,
    SNLI_DEV,
    SNLI_TRAIN,
    SQUAD_DEV,
    SQUAD_TRAIN,
    SST_DEV,
    SST_TRAIN,
)
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample, PairInputConfig
from headstart.tasks.questions import Question
from headstart.tasks.reading import ExamplesConfig
from headstart.tasks.squad import QaInputConfig, read_questions
from headstart.tasks.tag import Tag
from headstart.tasks.tag_inputs import TagInputConfig

ExampleT = TypeVar("ExampleT")


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


def snli_train(data: Path) -> list[PairExample]:
    """SNLI: premises, which are captions of photos, and hypotheses, with what follows for them."""
    return Pair.read(data / SNLI_TRAIN, PairInputConfig())


def snli_dev(data: Path) -> list[PairExample]:
    return Pair.read(data / SNLI_DEV, PairInputConfig())


def squad_train(data: Path, more: bool = False) -> list[Question]:
    """SQuAD 1.1: questions about paragraphs of Wikipedia. more: those of SQuADShifts' new articles too."""
    files = [SQUAD_TRAIN, *([NEW_WIKI] if more else [])]
    return [question for file in files for question in read_questions(data / file, QaInputConfig()).questions]


def squad_dev(data: Path) -> list[Question]:
    return read_questions(data / SQUAD_DEV, QaInputConfig()).questions


def evenly(examples: Sequence[ExampleT], count: int | None) -> list[ExampleT]:
    """So many examples, spread over the whole file in its order; None: all."""
    n = len(examples)
    if count is None or count >= n:
        return list(examples)
    return [examples[int(i)] for i in np.linspace(0, n - 1, count).round()]


def lines(path: Path) -> Iterator[str]:
    """A gzipped text, document by document."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from file
