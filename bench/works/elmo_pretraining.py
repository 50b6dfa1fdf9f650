"""ELMo small, a whole training step on 64 real sentences of 20 tokens: against one built from AllenNLP's modules.

Characters, biLSTM, a softmax over 10,000 words in both directions, clipping and AdamW, which is the same on both sides.
Nothing is dropped. The losses agree to 1e-4 of their value.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from bench.measure import Measurement, OneBatch, Setting, Side, check_close, in_turns
from bench.operations import TRAINING, bilstm, softmax, word_vector
from bench.peers.elmo import SMALL, AllenNlpLanguageModel, random_elmo
from bench.remote import Remote
from bench.samples import lines
from bench.works import FEW_REVIEWS
from headstart.cli.allocator import tune_allocator
from headstart.pretraining.elmo.batches import LanguageModelBatch
from headstart.pretraining.elmo.objective import ElmoLanguageModel
from headstart.pretraining.neural import NeuralLearner
from headstart.text.characters import characters_of
from headstart.text.sentences import sentence_spans
from headstart.text.vocabulary import SENTENCE_END, SENTENCE_START, WordCounter
from headstart.text.words import split_words
from headstart.training.optim import AdamW, OptimizerConfig

B, WORDS = 64, 18  # 64 x 20 tokens with the marks
VOCABULARY = 10_000
TOLERANCE = 1e-4
RATE = 0.1


def real_batch(path: Path) -> tuple[list[list[str]], LanguageModelBatch, int]:
    """The first sentences of the right length, as words and as our batch, and how many words the softmax knows.

    All are of one length, so that neither side has padding to skip.
    """
    text = "".join(lines(path))
    counter = WordCounter()
    counter.add(Counter(split_words(text)))
    vocabulary = counter.vocabulary(VOCABULARY, 1)
    spans = sentence_spans(text, False)
    sentences = [words for start, end in spans if len(words := split_words(text[start:end])) == WORDS][:B]
    marked = [[SENTENCE_START, *words, SENTENCE_END] for words in sentences]
    targets = torch.tensor([[vocabulary.id(word) for word in words] for words in marked])
    characters = torch.from_numpy(np.array([[characters_of(word) for word in words] for words in marked]))
    batch = LanguageModelBatch(characters.long(), torch.ones_like(targets, dtype=torch.bool), targets)
    return sentences, batch, len(vocabulary)


def models(n_words: int) -> tuple[ElmoLanguageModel, AllenNlpLanguageModel]:
    """Ours, and the same from AllenNLP's modules with the same weights."""
    with tempfile.TemporaryDirectory() as folder:
        encoder = random_elmo(Path(folder) / "elmo")
        model = ElmoLanguageModel(encoder, n_words)
        return model, AllenNlpLanguageModel(Path(folder) / "elmo", model.head.weight, model.head.bias)


def allennlp_step(path: Path) -> Callable[[], float]:
    from allennlp.modules.elmo import batch_to_ids

    sentences, batch, n_words = real_batch(path)
    _, peer = models(n_words)
    characters = batch_to_ids(sentences)
    optimizer = AdamW(peer, OptimizerConfig())

    def theirs() -> float:
        peer(characters, batch.targets).backward()
        optimizer.step(RATE)
        return batch.targets.numel()

    return theirs


def run(setting: Setting) -> Iterator[Measurement]:
    from allennlp.modules.elmo import batch_to_ids

    tune_allocator()  # as `pretrain` does; the peer has a process of its own
    sentences, batch, n_words = real_batch(setting.data / FEW_REVIEWS)
    model, peer = models(n_words)
    with torch.no_grad():
        mine = sum(term.total / term.count for term in model.train()(batch).values())
        their = peer(batch_to_ids(sentences), batch.targets)
    check_close("losses", mine / their, torch.ones(()), TOLERANCE)
    learner = NeuralLearner(model, OneBatch(batch), None, OptimizerConfig(), accumulate=1, seed=0)

    def ours() -> int:
        return learner.step(0, RATE).units

    theirs = Remote(allennlp_step, setting.data / FEW_REVIEWS)
    rates = in_turns({"ours": Side(ours), "allennlp": Side(theirs)}, setting.repeats)
    n_tokens = batch.targets.numel()
    distinct = len({word for words in sentences for word in words}) + 2
    predicted = (n_tokens - B) / n_tokens
    forward = bilstm(SMALL) + 2 * predicted * softmax(SMALL.projection, n_words)
    yield Measurement(
        work=f"ELMo small pretraining step, {B} x {WORDS + 2}",
        unit="tokens/s",
        ours=rates["ours"],
        peer=rates["allennlp"],
        peer_name="AllenNLP's modules, the same AdamW",
        goal=3.0,
        flops_per_unit=TRAINING * (forward + word_vector(SMALL) * distinct / n_tokens),
    )
