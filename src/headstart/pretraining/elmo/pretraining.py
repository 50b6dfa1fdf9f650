"""How ELMo is pretrained: its settings, its sizes, and how its learner is built."""

from __future__ import annotations

import copy
from collections.abc import Generator
from pathlib import Path
from typing import Literal

import torch
from pydantic import model_validator

from headstart.config import Table, pick
from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.encoders.word_table import WordTable
from headstart.heads.language_model import NextWordHead
from headstart.pretraining.base import Pretraining, RunConfig, Workplace
from headstart.pretraining.elmo.batches import LanguageModelBatch, LanguageModelBatches
from headstart.pretraining.elmo.objective import ElmoLanguageModel, LanguageModelConfig
from headstart.pretraining.elmo.spelling import teach_spelling
from headstart.pretraining.initial_vectors import InitialVectors, initial_vectors, log_frequencies
from headstart.pretraining.neural import BYTES_PER_PARAMETER, NeuralLearner, batch_tokens
from headstart.pretraining.words import WordsConfig, learn_words
from headstart.progress import Progress
from headstart.text.shards import Shards
from headstart.text.tokenise import Corpora
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import END_ID, SPECIALS, START_ID, UNKNOWN_ID, Vocabulary
from headstart.training.optim import OptimizerConfig
from headstart.training.seeding import freshly_initialised

MOST_WORDS = 30_000
RATES = {"tiny": 4e-3, "mini": 3e-3, "small": 1e-3, "original": 5e-4}
"""Peak learning rates: smaller networks take, and need, larger steps."""
LARGE_BATCH = 2048


class ElmoRun(RunConfig):
    kind: Literal["elmo"] = "elmo"
    vectors: str | None = None
    """Word vectors that the first layer and the softmax start from: a run, a file, or a catalogue name."""
    tokenizer: WordsConfig = WordsConfig()
    encoder: ElmoConfig
    objective: LanguageModelConfig = LanguageModelConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    @model_validator(mode="after")
    def only_a_table_is_shared(self) -> ElmoRun:
        if self.objective.tie and self.encoder.tokens == "characters":
            raise ValueError("objective.tie shares the table of words, and encoder.tokens 'characters' has none")
        return self


class ElmoPretraining(Pretraining[ElmoRun, WordTokenizer]):
    name = "elmo"
    config = ElmoRun

    def defaults(self, size: str | None, given: Table) -> Table:
        size = size or given.get("size") or "mini"
        return {
            "size": size,
            "encoder": copy.deepcopy(pick(ELMO_SIZES, size, "ELMo size")),
            "optimizer": {"learning_rate": RATES[size], "weight_decay": 0.0, "clip": 10.0},
            "tokenizer": {"min_count": 2},
            # The published 8,192 samples would be most of the smallest network's work: at equal time, 2,048 end at a
            # lower perplexity than 4,096, because there are more steps.
            "objective": {"samples": 2_048 if size == "tiny" else 8_192},
            "training": {
                "epochs": 3.0,
                "batch": batch_tokens(size, LARGE_BATCH),
                "warmup": 0.02,
                # Each held-out word costs two softmaxes over the whole vocabulary, so fewer are measured on the way.
                "evaluate_units": 8_000,
            },
        }

    def tokenizer(
        self, config: ElmoRun, paths: list[Path], place: Workplace
    ) -> Generator[Progress, None, WordTokenizer]:
        return (yield from learn_words(config.tokenizer, config.text, paths, place, most=MOST_WORDS))

    def longest_sentence(self, config: ElmoRun) -> int | None:
        return config.objective.longest if config.objective.unit == "sentence" else None

    def learner(
        self, config: ElmoRun, tokenizer: WordTokenizer, corpora: Corpora, place: Workplace
    ) -> Generator[Progress, None, NeuralLearner[LanguageModelBatch]]:
        train = batches_of(config, tokenizer.vocabulary, corpora.train)
        valid = None if corpora.valid is None else batches_of(config, tokenizer.vocabulary, corpora.valid)
        model = freshly_initialised(
            config.seed,
            lambda: ElmoLanguageModel(Elmo(config.encoder, len(tokenizer)), len(tokenizer), config.objective),
        )
        start_output(model.head, tokenizer.vocabulary, corpora.train)
        if config.vectors is not None:
            words = tokenizer.vocabulary.words
            initial = yield from initial_vectors(
                words, config.vectors, config.encoder.projection, config.seed, place.cache
            )
            yield from start_from(model, initial, tokenizer.vocabulary, config.seed)
        return NeuralLearner.configured(
            model, train, valid, config.optimizer, config.training, config.seed, place.ranks
        )

    def training_bytes(self, config: ElmoRun, vocabulary_size: int) -> int:
        """Softmax, LSTMs, and the character network's large matrices; smaller parameters are left out."""
        encoder = config.encoder
        width, filters = encoder.projection, sum(count for _, count in encoder.filters)
        directions = 2 if encoder.directions == "both" else 1
        softmax = vocabulary_size * (1 if config.objective.tie else width + 1)
        table = 0 if encoder.tokens == "characters" else vocabulary_size * width
        # Four gates that read the layer below and the projected state, and the projection of the cell.
        lstms = directions * encoder.layers * (4 * encoder.cell * 2 * width + encoder.cell * width)
        # Each highway layer has a transform and a gate.
        characters = 0 if encoder.tokens == "words" else encoder.highway * 2 * filters * filters + filters * width
        return BYTES_PER_PARAMETER * (softmax + table + lstms + characters)

    def measurable(self, config: ElmoRun, held_out: Shards) -> ElmoRun:
        return self.without_start(config)

    def without_start(self, config: ElmoRun) -> ElmoRun:
        return config.model_copy(update={"vectors": None})


def start_output(head: NextWordHead, vocabulary: Vocabulary, train: Shards) -> None:
    """The bias of the softmax starts from how often each word is a target, so that this need not be learned."""
    counts = vocabulary.counts.copy()
    counts[[START_ID, END_ID]] = train.n_sentences
    counts[UNKNOWN_ID] = max(0, train.n_units - int(counts[len(SPECIALS) :].sum()))
    with torch.no_grad():
        head.bias.copy_(log_frequencies(counts))


def start_from(
    model: ElmoLanguageModel, initial: InitialVectors, vocabulary: Vocabulary, seed: int
) -> Generator[Progress, None, None]:
    """Both ends of the language model start from word vectors: what a word is read as, and what predicts it."""
    tokens = model.encoder.tokens
    if model.head.weight is not None:
        initial.write_to(model.head.weight, model.head.scale)
    if isinstance(tokens, WordTable):
        initial.write_to(tokens.weight, 1.0)
    elif isinstance(tokens, CharacterNetwork):
        yield from teach_spelling(tokens, vocabulary, initial, seed)


def batches_of(config: ElmoRun, vocabulary: Vocabulary, shards: Shards) -> LanguageModelBatches:
    return LanguageModelBatches(
        shards,
        vocabulary,
        tokens=config.encoder.tokens,
        unit=config.objective.unit,
        longest=config.objective.longest,
        batch_tokens=config.training.batch,
        seed=config.seed,
    )
