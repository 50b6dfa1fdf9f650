"""word2vec (Mikolov et al. 2013): skip-gram or CBOW with negative sampling, by gensim's compiled inner loop.

Only gensim's inner loop is used. The outer loop, the order of the text, the learning rate and the state are ours, so
that a run can be killed and resumed like any other. Text reaches gensim as vocabulary ids that are subsampled already:
its loop looks up every word while it holds the interpreter's lock, and then has half as many to look up.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from gensim.models.word2vec import Word2Vec
from gensim.models.word2vec_inner import train_batch_cbow, train_batch_sg
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from headstart.batches.order import Permutation, seed_of
from headstart.config import Section
from headstart.errors import DataError
from headstart.pretraining.learner import StepResult
from headstart.pretraining.static.neighbours import sample_neighbourhoods, softmax_perplexity, unigram_perplexity
from headstart.text.shards import Shards
from headstart.training.tensors import copy_state

MOST_BATCH_WORDS = 10_000
"""gensim's inner loop has buffers for this many words in a call, and drops the rest in silence."""
JOB_WORDS = 10_000
"""Words in a worker's job; a step has several, so that no worker waits long for another at the end of a step."""
STEP_WORDS = 50_000
LEAST_STEPS = 20
"""Steps in an epoch of a short text, at least, so that the learning rate can decay."""
MEASURE_ONE_IN = 10
"""The loss is computed for one word in this many: computing it costs gensim some 7 % of the time."""
Method = Literal["skipgram", "cbow"]
PEAK_RATES: dict[Method, float] = {"skipgram": 0.025, "cbow": 0.05}


class Trained(NamedTuple):
    """What one job did: its loss, summed over the words it was measured on, their number, and the words read."""

    loss: float
    measured: int
    units: int


class Word2VecConfig(Section):
    method: Method = "skipgram"
    """Predict each neighbour from the word (skipgram), or the word from its neighbours' mean (cbow)."""
    dim: int = Field(100, ge=1)
    """Width of the vectors."""
    window: int = Field(5, ge=1, le=1_000)
    """Most words to either side that count as neighbours; each word draws its own width from 1 to this."""
    negative: int = Field(5, ge=1, le=1_000)
    """Noise words drawn for each true one."""
    ns_exponent: float = Field(0.75, ge=-1, le=1)
    """Noise words are drawn in proportion to their count to this power."""
    subsample: float = Field(1e-3, ge=0, le=1)
    """Words that make up a larger share of the text than this are dropped at random; 0 keeps all."""
    learning_rate: float | None = Field(None, gt=0)
    """Peak learning rate; left out, 0.025 for skipgram and 0.05 for cbow."""
    workers: int = Field(1, ge=1, le=1_024)
    """Threads that train on the same vectors. With more than one a run is not repeatable to the bit."""
    step_words: int | None = Field(None, ge=1)
    """Words of text each worker takes in one step; left out, 50,000, or fewer where the text is short."""


class Word2VecLearner:
    """Word vectors in training.

    With one worker a step is a pure function of the state, its number and the rate. With several, each job draws from
    (seed, step, job), but workers write into the same vectors without locks (as word2vec and gensim do), so that two
    runs agree closely and not to the bit.
    """

    device = torch.device("cpu")
    unit = "words"
    keeps_best = False

    def __init__(
        self,
        shards: Shards,
        valid_shards: Shards | None,
        counts: NDArray[np.int64],
        config: Word2VecConfig,
        seed: int,
    ) -> None:
        if not counts.sum():
            raise DataError("The text holds no word of the vocabulary, so there is nothing to learn word vectors from.")
        self.shards = shards
        self.counts = counts
        self.config = config
        self.seed = seed
        self.peak_rate = config.learning_rate or PEAK_RATES[config.method]
        self.keep = keep_probabilities(counts, config.subsample)
        # Negative sampling is at its optimum where u_c . v_w = log P(c | w) - log noise(c) + const, so the noise
        # distribution, count ^ ns_exponent, is the prior of the softmax that is evaluated. Training saw word c only
        # keep(c) of the times it occurs; dividing by keep(c) turns predicted frequencies into those of the text.
        log_prior = config.ns_exponent * np.log(np.maximum(counts, 1)) - np.log(self.keep[:-1])
        self.log_prior = torch.from_numpy(log_prior).float()
        self.neighbourhoods = None
        if valid_shards is not None:
            self.neighbourhoods = sample_neighbourhoods(valid_shards, config.window, seed)
        short = max(1, shards.n_units // (LEAST_STEPS * config.workers))
        self.step_units = config.workers * (config.step_words or min(STEP_WORDS, short))
        self.model = inner_model(counts, config)
        # One model for each job of a step: shallow copies share the vectors, not the random state and the running loss.
        self.models = [copy.copy(self.model) for _ in range(0, self.step_units, JOB_WORDS)]
        rng = np.random.default_rng(seed_of(seed, "word vectors"))
        # gensim's range, (-1/D, 1/D): products of two vectors start near 0, where the sigmoid is steepest. Contexts
        # start at 0.
        np.copyto(self.model.wv.vectors, (rng.random((len(counts), config.dim), np.float32) - 0.5) * (2 / config.dim))
        self.pool = ThreadPoolExecutor(config.workers) if config.workers > 1 else None

    def parameter_count(self) -> int:
        return 2 * len(self.counts) * self.config.dim

    def steps_per_epoch(self) -> int:
        return -(-self.shards.n_units // self.step_units)

    def step(self, number: int, rate: float) -> StepResult:
        epoch, place = divmod(number, self.steps_per_epoch())
        at = Permutation(self.steps_per_epoch(), self.seed, "word2vec", epoch)[place] * self.step_units
        starts = range(at, at + self.step_units, JOB_WORDS)
        ends = [min(start + JOB_WORDS, at + self.step_units) for start in starts]
        run = self.pool.map if self.pool else map
        done = run(partial(self._train_job, number, rate * self.peak_rate), self.models, count(), starts, ends)
        loss, measured, units = (sum(column) for column in zip(*done, strict=True))
        return StepResult(loss=loss / max(measured, 1), units=int(units))

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        """Perplexity under the softmax that has the same optimum: P(c | w) ~ prior(c) exp(u_c . v_w)."""
        sample = self.neighbourhoods.first(most_units) if self.neighbourhoods else None
        if sample is None or not len(sample.centres):
            return {}
        vectors, contexts = self.state()["vectors"], self.state()["contexts"]
        if self.config.method == "skipgram":
            queries, targets = vectors[sample.centres], sample.contexts
        else:
            # CBOW predicts a word from the mean of its neighbours, of which there are fewer at a sentence's ends.
            real = (sample.contexts >= 0).unsqueeze(-1)
            queries = (vectors[sample.contexts.clamp(min=0)] * real).sum(dim=1) / real.sum(dim=1)
            targets = sample.centres.unsqueeze(-1)
        return {
            "perplexity": softmax_perplexity(queries, targets, contexts, self.log_prior),
            "unigram_perplexity": unigram_perplexity(targets, self.counts),
        }

    def state(self) -> dict[str, Tensor]:
        return {
            "vectors": torch.from_numpy(self.model.wv.vectors),
            "contexts": torch.from_numpy(self.model.syn1neg),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        copy_state(self.state(), state)

    def weights(self) -> dict[str, Tensor]:
        return self.state()

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        copy_state(self.state(), weights)

    def memory_bytes(self) -> int:
        """Both tables, and gensim's dictionary of the ids."""
        return self.state_bytes() + 200 * len(self.counts)

    def state_bytes(self) -> int:
        return 4 * self.parameter_count()

    def _train_job(self, number: int, rate: float, model: Word2Vec, job: int, first: int, last: int) -> Trained:
        """Train on the sentences that start within units first..last of the text."""
        sentences = self.shards.sentences_between(first, last)
        if not sentences:
            return Trained(0.0, 0, 0)
        ids = np.concatenate(sentences).astype(np.int32)
        rng = np.random.default_rng(seed_of(self.seed, number, job))
        model.random = Draws(rng)
        loss, measured = 0.0, 0
        for batch in self._batches(ids, [len(sentence) for sentence in sentences], rng):
            n_measured = -(-len(batch) // MEASURE_ONE_IN)
            model.running_training_loss = 0.0
            measured += self._train_batch(model, batch[:n_measured], rate, compute_loss=True)
            loss += float(model.running_training_loss)
            self._train_batch(model, batch[n_measured:], rate, compute_loss=False)
        return Trained(loss, measured, len(ids))

    def _batches(self, ids: NDArray[Any], lengths: list[int], rng: np.random.Generator) -> Iterator[list[list[int]]]:
        """The words that stay, as lists of sentences, no more at a time than gensim has room for."""
        # Ids of words outside the vocabulary are V and above; all of them share the last entry of keep, which is 0.
        stays = rng.random(len(ids), np.float32) < self.keep[np.minimum(ids, len(self.counts))]
        # Sentence ends move to the left by as many words as were dropped before them.
        kept_before = np.concatenate(([0], np.cumsum(stays)))
        ends = kept_before[np.cumsum(lengths)]
        words = ids[stays].tolist()
        batch: list[list[int]] = []
        room = MOST_BATCH_WORDS
        for start, end in pairwise([0, *ends.tolist()]):
            for piece in range(start, end, MOST_BATCH_WORDS):
                sentence = words[piece : min(piece + MOST_BATCH_WORDS, end)]
                if len(sentence) > room:
                    yield batch
                    batch, room = [], MOST_BATCH_WORDS
                batch.append(sentence)
                room -= len(sentence)
        if batch:
            yield batch

    def _train_batch(self, model: Word2Vec, batch: list[list[int]], rate: float, *, compute_loss: bool) -> int:
        work = np.empty(self.config.dim, np.float32)
        if self.config.method == "skipgram":
            return int(train_batch_sg(model, batch, rate, work, compute_loss))
        mean = np.empty(self.config.dim, np.float32)
        return int(train_batch_cbow(model, batch, rate, work, mean, compute_loss))


class Draws:
    """What gensim's inner loop calls on `model.random`. Plain ints, which it reads faster than numpy's."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def randint(self, low: int, high: int, size: int | None = None) -> int | list[int]:
        drawn: int | list[int] = (
            self.rng.integers(low, high, size).tolist() if size is not None else int(self.rng.integers(low, high))
        )
        return drawn


def keep_probabilities(counts: NDArray[np.int64], subsample: float) -> NDArray[np.float32]:
    """word2vec's subsampling: a word with share f of the text stays with probability sqrt(t / f) + t / f.

    One entry more than there are words: 0, for every word outside the vocabulary.
    """
    keep = np.zeros(len(counts) + 1, np.float32)
    ratio = subsample * counts.sum() / np.maximum(counts, 1) if subsample else 1.0  # t / f, with f = count / total
    keep[:-1] = np.minimum(np.sqrt(ratio) + ratio, 1.0)
    return keep


def inner_model(counts: NDArray[np.int64], config: Word2VecConfig) -> Word2Vec:
    """A gensim model whose words are the ids 0..V-1 themselves, with the tables its inner loop reads."""
    model = Word2Vec(
        vector_size=config.dim,
        window=config.window,
        sg=int(config.method == "skipgram"),
        negative=config.negative,
        ns_exponent=config.ns_exponent,
        sample=0,  # the words come subsampled
    )
    V = len(counts)
    model.wv.key_to_index = {i: i for i in range(V)}
    model.wv.vectors = np.zeros((V, config.dim), np.float32)
    model.syn1neg = np.zeros((V, config.dim), np.float32)
    # gensim draws a noise word by a uniform integer below 2^31 - 1 and a binary search in this cumulative table. Words
    # that never occur (the special ones) get no share, whatever the exponent.
    noise = np.where(counts > 0, np.maximum(counts, 1).astype(np.float64) ** config.ns_exponent, 0.0)
    model.cum_table = np.round(np.cumsum(noise) / noise.sum() * (2**31 - 1)).astype(np.uint32)
    return model
