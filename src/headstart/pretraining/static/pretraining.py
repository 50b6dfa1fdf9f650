"""How word vectors are pretrained, by word2vec or GloVe: their settings, and how their learners are built."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from torch import Tensor

from headstart.config import Table
from headstart.errors import ConfigError, Remedy
from headstart.pretraining.base import Pretraining, RunConfig, Workplace
from headstart.pretraining.static.cooccurrence import count_cooccurrences
from headstart.pretraining.static.glove import GloveConfig, GloveLearner
from headstart.pretraining.static.word2vec import Method, Word2VecConfig, Word2VecLearner
from headstart.pretraining.words import WordsConfig, learn_words
from headstart.progress import Progress
from headstart.text.tokenise import Corpora
from headstart.text.tokenizer import WordTokenizer

STATIC = "static"
MOST_WORDS = 400_000
BYTES = 4
"""Of a float32."""


class StaticRun(RunConfig):
    kind: Literal["static"] = "static"
    tokenizer: WordsConfig = WordsConfig()


class Word2VecRun(StaticRun):
    objective: Word2VecConfig = Word2VecConfig()


class GloveRun(StaticRun):
    objective: GloveConfig = GloveConfig()


StaticT = TypeVar("StaticT", bound=StaticRun)


class StaticPretraining(Pretraining[StaticT, WordTokenizer]):
    """What word2vec and GloVe share: words as units, and weights that are the encoder itself."""

    divides = False

    def tokenizer(
        self, config: StaticT, paths: list[Path], place: Workplace
    ) -> Generator[Progress, None, WordTokenizer]:
        return (yield from learn_words(config.tokenizer, config.text, paths, place, most=MOST_WORDS))

    def with_encoder(self, weights: Mapping[str, Tensor], encoder: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {**weights, **encoder}


class Word2VecPretraining(StaticPretraining[Word2VecRun]):
    config = Word2VecRun

    def __init__(self, method: Method) -> None:
        self.name: Method = method

    def defaults(self, size: str | None, given: Table) -> Table:
        refuse_size(size)
        # Threads that write into the same vectors cannot be repeated to the bit, and a run of --steps must be.
        workers = 1 if given.get("training", {}).get("steps") is not None else os.cpu_count() or 1
        return {
            "tokenizer": {"lowercase": True},
            "objective": {"method": self.name, "workers": workers},
            "training": {"warmup": 0.0, "epochs": 5.0, "evaluate_units": 2_000},
        }

    def learner(
        self, config: Word2VecRun, tokenizer: WordTokenizer, corpora: Corpora, place: Workplace
    ) -> Generator[Progress, None, Word2VecLearner]:
        yield from ()
        return Word2VecLearner(corpora.train, corpora.valid, tokenizer.vocabulary.counts, config.objective, config.seed)

    def training_bytes(self, config: Word2VecRun, vocabulary_size: int) -> int:
        """Word and context vectors, and the initial values while they are copied into place."""
        return 3 * BYTES * vocabulary_size * config.objective.dim

    def wrote(self, table: Table) -> bool:
        return table.get("kind") == STATIC and method_of(table) == self.name


class GlovePretraining(StaticPretraining[GloveRun]):
    name = "glove"
    config = GloveRun

    def defaults(self, size: str | None, given: Table) -> Table:
        refuse_size(size)
        return {
            "tokenizer": {"lowercase": True},
            "training": {"warmup": 0.0, "decay": "constant", "epochs": 25.0, "evaluate_units": 2_000},
        }

    def learner(
        self, config: GloveRun, tokenizer: WordTokenizer, corpora: Corpora, place: Workplace
    ) -> Generator[Progress, None, GloveLearner]:
        pairs = yield from count_cooccurrences(corpora.train, window=config.objective.window, cache=place.cache)
        return GloveLearner(pairs, corpora.valid, tokenizer.vocabulary.counts, config.objective, config.seed)

    def training_bytes(self, config: GloveRun, vocabulary_size: int) -> int:
        """Word and context vectors, each with AdaGrad's sums of squares."""
        return 4 * BYTES * vocabulary_size * config.objective.dim

    def wrote(self, table: Table) -> bool:
        return table.get("kind") == STATIC and method_of(table) is None

    def with_encoder(self, weights: Mapping[str, Tensor], encoder: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """GloVe's vectors are words + contexts; the contexts are its output layer, so the words take the whole change.

        The change is added, rather than the contexts subtracted, so that unchanged vectors stay the same to the bit.
        """
        change = encoder["vectors"].cpu() - weights["vectors"]
        return {**weights, **encoder, "words": weights["words"] + change}


def method_of(table: Table) -> object:
    """word2vec's config.toml names its method, GloVe's has none."""
    objective = table.get("objective")
    return objective.get("method") if isinstance(objective, dict) else None


def refuse_size(size: str | None) -> None:
    if size is not None:
        raise ConfigError(
            f"Word vectors have no size; got '{size}'.",
            Remedy("Set their width with {}.", "objective.dim=100", "--dim"),
        )
