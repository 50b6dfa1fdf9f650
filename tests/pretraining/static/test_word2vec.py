"""word2vec: order, subsampling, batches and state are ours to get right; the numbers are gensim's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gensim.models import Word2Vec
from numpy.typing import NDArray

from headstart.errors import CheckpointError, DataError
from headstart.pretraining.static import word2vec
from headstart.pretraining.static.word2vec import Word2VecConfig, Word2VecLearner, inner_model, keep_probabilities

V = 22


class TextInMemory:
    """Sentences with the methods of Shards that training and evaluation use."""

    def __init__(self, sentences: list[list[int]], vocabulary_size: int = V) -> None:
        self.sentences = [np.array(sentence, np.int32) for sentence in sentences]
        self.vocabulary_size = vocabulary_size
        self.n_units = sum(map(len, sentences))
        self.starts = np.cumsum([0, *map(len, sentences)])[:-1]

    def sentences_between(self, first: int, last: int) -> list[NDArray[Any]]:
        a, b = np.searchsorted(self.starts, [first, last])
        return self.sentences[a:b]

    def counts(self) -> NDArray[np.int64]:
        return np.bincount(np.concatenate(self.sentences), minlength=V)[:V].astype(np.int64)


def two_topics(n_sentences: int = 600, seed: int = 0) -> TextInMemory:
    """A sentence keeps to the even or to the odd words, save for the odd word outside the vocabulary."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(n_sentences):
        words = rng.integers(1, 11, rng.integers(2, 14)) * 2 + rng.integers(2)
        sentences.append(np.where(rng.random(len(words)) < 0.1, V + 4, np.maximum(words, 3)).tolist())
    return TextInMemory(sentences)


def learner(text: TextInMemory, valid: TextInMemory | None = None, **settings: Any) -> Word2VecLearner:
    config = Word2VecConfig(**{"dim": 8, "subsample": 0.0, "step_words": 500, "learning_rate": 0.1, **settings})
    return Word2VecLearner(text, valid, text.counts(), config, seed=1)  # type: ignore[arg-type]


def test_one_word_pair_by_hand() -> None:
    """Skip-gram on the pair (3, 4) with word 3 as the only noise, which gensim skips where 3 is the true word."""
    text = TextInMemory([[3, 4]])
    model = learner(text, dim=2, negative=1, window=1)
    noise_free = np.zeros(V, np.uint32)
    noise_free[3:] = 2**31 - 1  # every draw gives word 3
    for inner in model.models:
        inner.cum_table = noise_free
    v, u = model.state()["vectors"], model.state()["contexts"]
    v[3], v[4] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    u[3], u[4] = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.0])
    model.step(0, 1.0)
    # Word 3 is foretold from 4 with no noise; then word 4 from 3, with word 3 as noise.
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    g = 0.1 * (1 - sigmoid(0.5))
    v4, u3 = np.array([0.0, 1.0]) + g * np.array([0.5, 0.5]), np.array([0.5, 0.5]) + g * np.array([0.0, 1.0])
    g_true, g_noise = 0.1 * (1 - sigmoid(0.25)), 0.1 * (0 - sigmoid(u3[0]))
    v3 = np.array([1.0, 0.0]) + g_true * np.array([0.25, 0.0]) + g_noise * u3
    # gensim reads the logistic function from a table with steps of 0.012.
    np.testing.assert_allclose(v[4], v4, atol=1e-3)
    np.testing.assert_allclose(v[3], v3, atol=1e-3)


def test_noise_table_is_gensims() -> None:
    counts = np.array([0, 0, 0, 40, 20, 5, 1], np.int64)
    ours = inner_model(counts, Word2VecConfig(dim=2)).cum_table
    theirs = Word2Vec(vector_size=2, min_count=1, sorted_vocab=0)
    theirs.build_vocab_from_freq({f"w{i}": int(n) for i, n in enumerate(counts) if n})
    theirs.make_cum_table()
    assert ours[:3].tolist() == [0, 0, 0]
    np.testing.assert_allclose(ours[3:].astype(float), theirs.cum_table.astype(float), atol=1)


def test_subsampling_is_gensims_and_drops_words_outside_the_vocabulary() -> None:
    counts = np.array([0, 0, 0, 900, 90, 10], np.int64)
    theirs = Word2Vec(vector_size=2, min_count=1, sample=0.01, sorted_vocab=0)
    theirs.build_vocab_from_freq({f"w{i}": int(n) for i, n in enumerate(counts) if n})
    expected = theirs.wv.expandos["sample_int"] / 2**32
    ours = keep_probabilities(counts, 0.01)
    np.testing.assert_allclose(ours[3:-1], expected, rtol=1e-4)
    assert ours[-1] == 0
    assert keep_probabilities(counts, 0.0).tolist() == [1] * 6 + [0]


def test_batches_hold_every_known_word_in_order_and_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "MOST_BATCH_WORDS", 6)
    sentences = [[3, 4, V + 1, 5], [], [V], [6] * 14, [7, 8]]
    model = learner(TextInMemory(sentences))
    ids = np.concatenate([np.array(s, np.int32) for s in sentences])
    batches = list(model._batches(ids, [len(s) for s in sentences], np.random.default_rng(0)))
    assert batches == [[[3, 4, 5]], [[6] * 6], [[6] * 6], [[6] * 2, [7, 8]]]


def test_an_epoch_reads_every_word_once_in_another_order() -> None:
    text = two_topics()
    model = learner(text, step_words=100)
    orders = []
    for epoch in (0, 1):
        first = epoch * model.steps_per_epoch()
        units = [model.step(first + k, 1.0).units for k in range(model.steps_per_epoch())]
        assert sum(units) == text.n_units
        orders.append(units)
    assert orders[0] != orders[1]


@pytest.mark.parametrize("method", ["skipgram", "cbow"])
def test_a_killed_run_goes_on_to_the_bit(method: str) -> None:
    def fresh() -> Word2VecLearner:
        return learner(two_topics(), method=method, subsample=0.05)

    whole = fresh()
    for k in range(12):
        whole.step(k, 1 - k / 12)
    killed, resumed = fresh(), fresh()
    for k in range(7):
        killed.step(k, 1 - k / 12)
    resumed.load_state({name: tensor.clone() for name, tensor in killed.state().items()})
    for k in range(7, 12):
        resumed.step(k, 1 - k / 12)
    for name, tensor in whole.state().items():
        assert torch.equal(tensor, resumed.state()[name]), name


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("method", ["skipgram", "cbow"])
def test_words_that_share_neighbours_come_together(method: str, workers: int) -> None:
    text = two_topics(3000)
    model = learner(text, two_topics(100, seed=1), method=method, workers=workers, step_words=2000)
    before = model.evaluate(None)
    losses = [model.step(k, 1.0).loss for k in range(5 * model.steps_per_epoch())]
    after = model.evaluate(None)
    assert losses[-1] < losses[0]
    # Knowing the topic leaves half of the words.
    assert after["perplexity"] < 0.75 * after["unigram_perplexity"]
    assert before["unigram_perplexity"] == after["unigram_perplexity"]
    vectors = torch.nn.functional.normalize(model.weights()["vectors"][4:], dim=1)
    nearest = (vectors @ vectors.T).fill_diagonal_(-1).argmax(dim=1)
    assert torch.equal(nearest % 2, torch.arange(len(vectors)) % 2)


def test_perplexity_of_a_model_that_knows_nothing_is_that_of_its_prior() -> None:
    text = two_topics()
    model = learner(text, two_topics(50, seed=1), ns_exponent=1.0)
    figures = model.evaluate(None)
    assert model.state()["contexts"].abs().sum() == 0
    assert figures["perplexity"] == pytest.approx(figures["unigram_perplexity"], rel=0.01)
    assert model.evaluate(10) != figures
    assert learner(text).evaluate(None) == {}


def test_the_peak_rate_follows_the_method() -> None:
    assert learner(two_topics(), learning_rate=None).peak_rate == 0.025
    assert learner(two_topics(), learning_rate=None, method="cbow").peak_rate == 0.05


def test_a_rate_of_zero_changes_nothing() -> None:
    model = learner(two_topics())
    before = {name: tensor.clone() for name, tensor in model.state().items()}
    model.step(0, 0.0)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state().items())


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(DataError, match="holds no word of the vocabulary"):
        learner(TextInMemory([[V, V + 1]]))
    model = learner(two_topics())
    with pytest.raises(CheckpointError, match=r"it lacks \['contexts'\]"):
        model.load_state({"vectors": model.state()["vectors"]})
