"""ELMo small, a whole training step on real sentences: ours against the same mathematics written plainly."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from bench.measure import Measurement, OneBatch, in_turns
from bench.plain_elmo import plain_loss
from headstart.batches.batch import LanguageModelBatch
from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.heads.language_model import ElmoLanguageModel
from headstart.text.characters import characters_of
from headstart.text.sentences import sentence_spans
from headstart.text.vocabulary import Vocabulary, WordCounter
from headstart.text.words import split_words
from headstart.training.neural import NeuralLearner
from headstart.training.optim import OptimizerConfig

TEXT = "lm_imdb_unsup/valid.txt.gz"
B, WORDS = 64, 18  # 64 x 20 tokens with the marks
VOCABULARY = 10_000
TOLERANCE = 1e-4


def real_batch(data: Path) -> tuple[LanguageModelBatch, Vocabulary]:
    """The first sentences of the right length: both sides then have no padding to skip."""
    with gzip.open(data / TEXT, "rt", encoding="utf-8") as file:
        text = file.read()
    counter = WordCounter()
    counter.add(Counter(split_words(text)))
    vocabulary = counter.vocabulary(VOCABULARY, 1)
    sentences = [split_words(text[start:end]) for start, end in sentence_spans(text, False)]
    marked = [["<S>", *words, "</S>"] for words in sentences if len(words) == WORDS][:B]
    targets = torch.tensor([[vocabulary.id(word) for word in words] for words in marked])
    characters = torch.from_numpy(np.array([[characters_of(word) for word in words] for words in marked]))
    return LanguageModelBatch(characters.long(), torch.ones_like(targets, dtype=torch.bool), targets), vocabulary


def run(data: Path) -> list[Measurement]:
    batch, vocabulary = real_batch(data)
    model = ElmoLanguageModel(Elmo(ElmoConfig(**ELMO_SIZES["small"])), len(vocabulary))
    learner = NeuralLearner(model, OneBatch(batch), None, OptimizerConfig(), accumulate=1, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    check_equal(model, batch)

    def ours() -> int:
        return learner.step(0, 0.1).units

    def plain() -> int:
        plain_loss(model.train(), batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return int(batch.mask.sum())

    mine, other = in_turns(ours, plain)
    return [Measurement("ELMo small pretraining step, 64 x 20", "tokens/s", mine, other, "written plainly", 2.0)]


def check_equal(model: ElmoLanguageModel, batch: LanguageModelBatch) -> None:
    """Two speeds are compared only if they are of the same computation."""
    model.eval()
    with torch.no_grad():
        ours = sum(float(term.total) / term.count for term in model(batch).values())
        plain = float(plain_loss(model, batch))
    if abs(ours - plain) > TOLERANCE * abs(plain):
        raise RuntimeError(f"the two losses differ: ours {ours}, plain {plain}")
