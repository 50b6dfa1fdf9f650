"""The three generations of pretrained encoders: how each is configured, what it reads, and what trains it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from pydantic import Field, model_validator

from headstart.batches.cooccurrence import count_cooccurrences
from headstart.batches.language_model import LanguageModelBatches
from headstart.batches.masked import MaskedBatches, MaskedConfig, PieceTable
from headstart.batches.order import seed_of
from headstart.config import Section, Table, pick
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.errors import CheckpointError, ConfigError
from headstart.heads.language_model import ElmoLanguageModel, LanguageModelConfig, MaskedLanguageModel
from headstart.pretraining.glove import GloveConfig, GloveLearner
from headstart.pretraining.initial_vectors import start_from_vectors, teach_spelling
from headstart.pretraining.learner import Learner
from headstart.pretraining.loop import TrainingConfig
from headstart.pretraining.neural import NeuralLearner
from headstart.pretraining.word2vec import Word2VecConfig, Word2VecLearner
from headstart.progress import Progress
from headstart.text.documents import TextConfig
from headstart.text.tokenise import Corpora, count_words, learn_pieces
from headstart.text.tokenizer import Tokenizer, WordTokenizer
from headstart.text.wordpiece import WordPieceTokenizer, load_wordpiece
from headstart.training.optim import OptimizerConfig
from headstart.training.run import RunDirectory

BuiltT = TypeVar("BuiltT")
MOST_WORDS = {"static": 400_000, "elmo": 30_000}
PUBLISHED_PIECES = 30_522
STATIC = "static"


class WordsConfig(Section):
    """Whole words as units."""

    size: int | None = Field(default=None, ge=1)
    """Words in the vocabulary; left out, as many as the text supports, up to 400,000 (static) or 30,000 (ELMo)."""
    min_count: int = Field(default=5, ge=1)
    """Rarer words are outside the vocabulary."""
    lowercase: bool = False
    """Fold case before anything else."""


class PiecesConfig(Section):
    """WordPiece units."""

    size: int | None = Field(default=None, ge=100)
    """Pieces to learn; left out, 30,522 or as many as the text supports."""
    min_count: int = Field(default=2, ge=1)
    """Rarer pieces are not learned."""
    path: str | None = None
    """A vocab.txt, a tokenizer.json or a folder with either, to use instead of learning one."""
    lowercase: bool = True
    """Fold case and strip accents, as BERT's uncased models do."""


class LmConfig(LanguageModelConfig):
    """ELMo's two language models."""

    unit: Literal["sentence", "window"] = "sentence"
    """Where the LSTM starts from zero: at each sentence, or at each window of a document."""
    longest: int = Field(default=128, ge=2)
    """Words in the longest sentence or window; longer ones are cut."""


class RunConfig(Section):
    """What every run has."""

    kind: str
    size: str | None = None
    """The published size that filled in [encoder]."""
    seed: int = 0
    """Decides every random draw of the run."""
    text: TextConfig = TextConfig()
    training: TrainingConfig = TrainingConfig()


class Word2VecRun(RunConfig):
    kind: Literal["static"] = "static"
    tokenizer: WordsConfig = WordsConfig()
    objective: Word2VecConfig = Word2VecConfig()


class GloveRun(RunConfig):
    kind: Literal["static"] = "static"
    tokenizer: WordsConfig = WordsConfig()
    objective: GloveConfig = GloveConfig()


class ElmoRun(RunConfig):
    kind: Literal["elmo"] = "elmo"
    vectors: str | None = None
    """Folder of a run of word vectors that the character network is taught to spell first."""
    tokenizer: WordsConfig = WordsConfig()
    encoder: ElmoConfig
    objective: LmConfig = LmConfig()
    optimizer: OptimizerConfig = OptimizerConfig()


class BertRun(RunConfig):
    kind: Literal["bert"] = "bert"
    vectors: str | None = None
    """Folder of a run of word vectors that the embeddings of whole words start from."""
    tokenizer: PiecesConfig = PiecesConfig()
    encoder: BertConfig
    objective: MaskedConfig = MaskedConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    @model_validator(mode="after")
    def sequences_fit(self) -> BertRun:
        if self.objective.length > self.encoder.positions:
            raise ValueError(
                f"objective.length must be at most encoder.positions; got {self.objective.length} / "
                f"{self.encoder.positions}"
            )
        return self


Defaults = Callable[[str | None, Table], Table]
"""(--size, what the user gave) -> the settings under it."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where intermediate files are kept, and how many processes or threads may work."""

    cache: Path
    workers: int


@dataclass(frozen=True, slots=True)
class Generation:
    """One way to pretrain. The functions are generators: they yield how far they are, and return what they made."""

    config: type[RunConfig]
    defaults: Defaults
    tokenizer: Callable[[Any, list[Path], Workplace], Generator[Progress, None, Tokenizer]]
    longest_sentence: Callable[[Any], int | None]
    learner: Callable[[Any, Any, Corpora, Workplace], Generator[Progress, None, Learner]]


def learn_words(config: Any, paths: list[Path], place: Workplace) -> Generator[Progress, None, Tokenizer]:
    settings: WordsConfig = config.tokenizer
    counts = yield from count_words(
        paths, config.text, lowercase=settings.lowercase, cache=place.cache, workers=place.workers
    )
    return WordTokenizer(counts.vocabulary(settings.size, settings.min_count, most=MOST_WORDS[config.kind]))


def learn_or_load_pieces(config: BertRun, paths: list[Path], place: Workplace) -> Generator[Progress, None, Tokenizer]:
    settings = config.tokenizer
    if settings.path is not None:
        return load_wordpiece(Path(settings.path), lowercase=settings.lowercase)
    return (
        yield from learn_pieces(
            paths,
            config.text,
            size=settings.size or PUBLISHED_PIECES,
            lowercase=settings.lowercase,
            min_count=settings.min_count,
            exact=settings.size is not None,
            cache=place.cache,
        )
    )


def build_word2vec(
    config: Word2VecRun, tokenizer: WordTokenizer, corpora: Corpora, place: Workplace
) -> Generator[Progress, None, Learner]:
    yield from ()
    return Word2VecLearner(corpora.train, corpora.valid, tokenizer.vocabulary.counts, config.objective, config.seed)


def build_glove(
    config: GloveRun, tokenizer: WordTokenizer, corpora: Corpora, place: Workplace
) -> Generator[Progress, None, Learner]:
    pairs = yield from count_cooccurrences(corpora.train, window=config.objective.window, cache=place.cache)
    return GloveLearner(pairs, corpora.valid, tokenizer.vocabulary.counts, config.objective, config.seed)


def build_elmo(
    config: ElmoRun, tokenizer: WordTokenizer, corpora: Corpora, place: Workplace
) -> Generator[Progress, None, Learner]:
    yield from ()
    train, valid = (
        shards
        and LanguageModelBatches(
            shards,
            tokenizer.vocabulary,
            unit=config.objective.unit,
            longest=config.objective.longest,
            batch_tokens=config.training.batch,
            seed=config.seed,
        )
        for shards in (corpora.train, corpora.valid)
    )
    model = freshly_initialised(
        config.seed, lambda: ElmoLanguageModel(Elmo(config.encoder), len(tokenizer), config.objective)
    )
    if config.vectors is not None:
        yield from teach_spelling(model.encoder.characters, tokenizer.vocabulary, Path(config.vectors), config.seed)
    return neural_learner(config, model, train, valid)


def build_bert(
    config: BertRun, tokenizer: WordPieceTokenizer, corpora: Corpora, place: Workplace
) -> Generator[Progress, None, Learner]:
    yield from ()
    pieces = piece_table(tokenizer)
    sequences = max(1, config.training.batch // config.objective.length)
    train = MaskedBatches(corpora.train, pieces, config.objective, batch_sequences=sequences, seed=config.seed)
    valid = None
    if corpora.valid is not None:
        # One held-out document cannot give pairs; the masked words can still be measured on it.
        held_out = config.objective.model_copy(update={"nsp": config.objective.nsp and corpora.valid.n_documents > 1})
        valid = MaskedBatches(corpora.valid, pieces, held_out, batch_sequences=sequences, seed=config.seed)
    model = freshly_initialised(config.seed, lambda: MaskedLanguageModel(Bert(config.encoder, len(tokenizer))))
    if config.vectors is not None:
        start_from_vectors(model.encoder.words.weight, tokenizer.pieces, Path(config.vectors), config.seed)
    return neural_learner(config, model, train, valid)


def neural_learner(config: ElmoRun | BertRun, model: torch.nn.Module, train: Any, valid: Any) -> NeuralLearner:
    return NeuralLearner(
        model,
        train,
        valid,
        config.optimizer,
        accumulate=config.training.accumulate,
        seed=config.seed,
        precision=config.training.precision,
    )


def freshly_initialised(seed: int, build: Callable[[], BuiltT]) -> BuiltT:
    """Build something whose random start follows from the seed alone, leaving torch's generator as it was."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed_of(seed, "initial weights"))
        return build()


def piece_table(tokenizer: WordPieceTokenizer) -> PieceTable:
    return PieceTable(
        size=len(tokenizer),
        pad=tokenizer.pad,
        cls=tokenizer.cls,
        sep=tokenizer.sep,
        mask=tokenizer.mask,
        continues=np.array([piece.startswith("##") for piece in tokenizer.pieces]),
    )


# Smaller networks take, and need, larger steps.
ELMO_RATES = {"tiny": 4e-3, "mini": 3e-3, "small": 1e-3, "original": 5e-4}
BERT_RATES = {"tiny": 2e-3, "mini": 1e-3, "small": 6e-4, "medium": 5e-4, "base": 2e-4, "large": 1e-4}


def word2vec_defaults(method: Literal["skipgram", "cbow"]) -> Defaults:
    def defaults(size: str | None, given: Table) -> Table:
        refuse_size(size)
        # Threads that write into the same vectors cannot be repeated to the bit, and a run of --steps must be.
        workers = 1 if given.get("training", {}).get("steps") is not None else os.cpu_count() or 1
        return {
            "tokenizer": {"lowercase": True},
            "objective": {"method": method, "workers": workers},
            "training": {"warmup": 0.0, "epochs": 5.0, "evaluate_units": 2_000},
        }

    return defaults


def glove_defaults(size: str | None, given: Table) -> Table:
    refuse_size(size)
    return {
        "tokenizer": {"lowercase": True},
        "training": {"warmup": 0.0, "decay": "constant", "epochs": 25.0, "evaluate_units": 2_000},
    }


def refuse_size(size: str | None) -> None:
    if size is not None:
        raise ConfigError(f"Word vectors have no --size; their width is --dim. Got --size {size}.")


def elmo_defaults(size: str | None, given: Table) -> Table:
    size = size or given.get("size") or "mini"
    return {
        "size": size,
        "encoder": copy.deepcopy(pick(ELMO_SIZES, size, "ELMo size")),
        "optimizer": {"learning_rate": ELMO_RATES[size], "weight_decay": 0.0, "clip": 10.0},
        "tokenizer": {"min_count": 2},
        # The published 8,192 samples would be most of the smallest network's work.
        "objective": {"samples": 2_048 if size == "tiny" else 8_192},
        # Each held-out word costs two softmaxes over the whole vocabulary, so fewer are measured on the way.
        "training": {"epochs": 3.0, "batch": batch_tokens(size, 2048), "warmup": 0.02, "evaluate_units": 8_000},
    }


def bert_defaults(size: str | None, given: Table) -> Table:
    size = size or given.get("size") or "mini"
    return {
        "size": size,
        "encoder": copy.deepcopy(pick(BERT_SIZES, size, "BERT size")),
        "optimizer": {"learning_rate": BERT_RATES[size]},
        "training": {"epochs": 3.0, "batch": batch_tokens(size, 4096), "warmup": 0.06},
    }


def batch_tokens(size: str, large: int) -> int:
    """In the time a CPU has, the small networks learn more from many small steps; large ones need steadier ones."""
    return 1024 if size in ("tiny", "mini") else large


def any_length(config: Any) -> None:
    return None


GENERATIONS: dict[str, Generation] = {
    "skipgram": Generation(Word2VecRun, word2vec_defaults("skipgram"), learn_words, any_length, build_word2vec),
    "cbow": Generation(Word2VecRun, word2vec_defaults("cbow"), learn_words, any_length, build_word2vec),
    "glove": Generation(GloveRun, glove_defaults, learn_words, any_length, build_glove),
    "elmo": Generation(
        ElmoRun,
        elmo_defaults,
        learn_words,
        lambda config: config.objective.longest if config.objective.unit == "sentence" else None,
        build_elmo,
    ),
    "bert": Generation(BertRun, bert_defaults, learn_or_load_pieces, any_length, build_bert),
}


def recorded(run: RunDirectory) -> tuple[str, Table, Table]:
    """What a run's config.toml tells: the key of its generation, its settings and its data table."""
    table = run.read_config()
    data = table.pop("data", None)
    if not isinstance(data, dict) or "sources" not in data or "kind" not in table:
        raise CheckpointError(f"{run.path / 'config.toml'}: has no [data] sources; it was not written by a run.")
    kind = table["kind"]
    return table["objective"].get("method", "glove") if kind == STATIC else kind, table, data
