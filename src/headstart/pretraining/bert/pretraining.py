"""How BERT is pretrained: its settings, its sizes, and how its learner is built."""

from __future__ import annotations

import copy
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator

from headstart.config import Table, overlay, pick
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.pretraining.base import Pretraining, RunConfig, VocabularyConfig, Workplace
from headstart.pretraining.bert.batches import MaskedBatch, MaskedBatches, MaskedConfig, PieceTable
from headstart.pretraining.bert.local_attention import start_local
from headstart.pretraining.bert.objective import MaskedLanguageModel
from headstart.pretraining.initial_vectors import initial_vectors, log_frequencies
from headstart.pretraining.neural import BYTES_PER_PARAMETER, SMALL_SIZES, NeuralLearner, batch_tokens
from headstart.progress import Progress
from headstart.text.counting import learn_pieces
from headstart.text.shards import Shards
from headstart.text.tokenise import Corpora
from headstart.text.wordpiece import WordPieceTokenizer
from headstart.text.wordpiece_loading import load_wordpiece
from headstart.training.optim import OptimizerConfig
from headstart.training.seeding import freshly_initialised

PUBLISHED_PIECES = 30_522
PUBLISHED_RATE = 0.15
RATES = {"tiny": 1e-3, "mini": 1e-3, "small": 6e-4, "medium": 5e-4, "base": 2e-4, "large": 1e-4}
"""Peak learning rates: smaller networks take, and need, larger steps."""
SMALL_PIECES = 12_000
FURTHER_RATE = 5e-5
"""For published weights that are trained further: they have more to lose than to gain."""
LARGE_BATCH = 4096
PUBLISHED_START = ("base", "large")
"""Sizes that no CPU trains; they are trained for long enough to find the neighbours by themselves."""
DEVIATION = 0.1
"""Of embeddings that start from word vectors: large beside the rows that stay random (0.02) and the first updates."""


class PiecesConfig(VocabularyConfig):
    """WordPiece units; without a size, 30,522 or as many as the text supports."""

    size: int | None = Field(default=None, ge=100)
    """Exactly so many pieces: a text that has fewer is refused."""
    min_count: int = Field(default=2, ge=1)
    """Rarer pieces are not learned."""
    path: str | None = None
    """A vocab.txt, a tokenizer.json or a folder with either, to use instead of learning one."""
    lowercase: bool = True
    """Fold case and strip accents, as BERT's uncased models do."""


class BertRun(RunConfig):
    kind: Literal["bert"] = "bert"
    vectors: str | None = None
    """Word vectors that the embeddings of whole words start from: a run, a file, or a name of the catalogue."""
    attention: Literal["local", "random"] = "random"
    """How attention starts: with heads that read the neighbours of a piece, or as published."""
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


class BertPretraining(Pretraining[BertRun, WordPieceTokenizer]):
    name = "bert"
    config = BertRun

    def defaults(self, size: str | None, given: Table) -> Table:
        size = size or given.get("size") or "mini"
        published: Table = {
            "size": size,
            "attention": "random" if size in PUBLISHED_START else "local",
            "encoder": copy.deepcopy(pick(BERT_SIZES, size, "BERT size")),
            "optimizer": {"learning_rate": RATES[size]},
            "training": {"epochs": 3.0, "batch": batch_tokens(size, LARGE_BATCH), "warmup": 0.06},
        }
        return overlay(published, for_minutes(given)) if size in SMALL_SIZES else published

    def tokenizer(
        self, config: BertRun, paths: list[Path], place: Workplace
    ) -> Generator[Progress, None, WordPieceTokenizer]:
        settings = config.tokenizer
        if settings.path is not None:
            return load_wordpiece(Path(settings.path), lowercase=settings.lowercase)
        return (
            yield from learn_pieces(
                paths,
                config.text,
                size=settings.size or settings.most or PUBLISHED_PIECES,
                lowercase=settings.lowercase,
                min_count=settings.min_count,
                exact=settings.size is not None,
                cache=place.cache,
                workers=place.workers,
                machines=place.machines,
            )
        )

    def learner(
        self, config: BertRun, tokenizer: WordPieceTokenizer, corpora: Corpora, place: Workplace
    ) -> Generator[Progress, None, NeuralLearner[MaskedBatch]]:
        log_frequency = log_frequencies(corpora.train.unit_counts())
        pieces = piece_table(tokenizer, log_frequency.double().numpy())
        train = batches_of(config, pieces, corpora.train)
        valid = None
        if corpora.valid is not None:
            valid = batches_of(self.measurable(config, corpora.valid), pieces, corpora.valid)
        model = freshly_initialised(config.seed, lambda: MaskedLanguageModel(Bert(config.encoder, len(tokenizer))))
        with torch.no_grad():
            model.masked.bias.copy_(log_frequency)
        if config.vectors is not None:
            embeddings = model.encoder.words.weight
            initial = yield from initial_vectors(
                tokenizer.pieces, config.vectors, embeddings.shape[1], config.seed, place.cache
            )
            initial.write_to(embeddings, DEVIATION)
        if config.attention == "local":
            start_local(model.encoder, config.seed)
        return NeuralLearner.configured(
            model, train, valid, config.optimizer, config.training, config.seed, place.ranks
        )

    def training_bytes(self, config: BertRun, vocabulary_size: int) -> int:
        """Embeddings and matrices; other biases and norms are left out."""
        encoder = config.encoder
        embeddings = (vocabulary_size + encoder.positions + encoder.segments) * encoder.width + vocabulary_size
        # Queries, keys, values and output of the attention, then the feed-forward network's two matrices.
        blocks = encoder.layers * (4 * encoder.width**2 + 2 * encoder.width * encoder.inner)
        heads = 2 * encoder.width**2  # the pooler and the masked-LM head's dense layer
        return BYTES_PER_PARAMETER * (embeddings + blocks + heads)

    def defaults_from(self, heads: Collection[str]) -> Table:
        return {"objective": {"nsp": "next" in heads}, "optimizer": {"learning_rate": FURTHER_RATE}}

    def untrained_heads(self, config: BertRun) -> Collection[str]:
        return () if config.objective.nsp else ("next",)

    def measurable(self, config: BertRun, held_out: Shards) -> BertRun:
        """Without the word vectors it started from, and without next-sentence prediction on a single document.

        One document has no other to draw a random text from; its masked pieces can still be measured. Masks are the
        published ones (15 %; 80/10/10), whatever a run trains on, so that runs can be compared.
        """
        objective = config.objective.model_copy(
            update={
                "nsp": config.objective.nsp and held_out.n_documents > 1,
                "mask_rate": PUBLISHED_RATE,
                "rare_first": 0.0,
                "corruption": "bert",
            }
        )
        return self.without_start(config).model_copy(update={"objective": objective})

    def without_start(self, config: BertRun) -> BertRun:
        return config.model_copy(update={"vectors": None})


def for_minutes(given: Table) -> Table:
    """The settings of sizes that are trained for minutes or hours on a CPU, where these differ from the published ones.

    Such a run sees its text once or twice: dropout slows it, next-sentence prediction learns nothing, and a rare piece
    or a position far from the first learns too little to be worth its time.
    """
    tokenizer = given.get("tokenizer", {})
    return {
        "encoder": {"dropout": 0.0, "attention_dropout": 0.0},
        "objective": {"nsp": False, "length": 64, "mask_rate": 0.2},
        "tokenizer": {} if {"size", "path"} & tokenizer.keys() else {"most": SMALL_PIECES},
    }


def batches_of(config: BertRun, pieces: PieceTable, shards: Shards) -> MaskedBatches:
    sequences = max(1, config.training.batch // config.objective.length)
    return MaskedBatches(shards, pieces, config.objective, batch_sequences=sequences, seed=config.seed)


def piece_table(tokenizer: WordPieceTokenizer, log_frequency: NDArray[np.float64]) -> PieceTable:
    return PieceTable(
        size=len(tokenizer),
        pad=tokenizer.pad,
        cls=tokenizer.cls,
        sep=tokenizer.sep,
        mask=tokenizer.mask,
        continues=np.array([piece.startswith("##") for piece in tokenizer.pieces]),
        log_frequency=log_frequency,
    )
