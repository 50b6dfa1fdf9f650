"""GloVe's step by hand and against autograd; its purity; and that it finds structure that was put into the text."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.errors import CheckpointError, DataError
from headstart.pretraining.static.cooccurrence import PAIR, Cooccurrences
from headstart.pretraining.static.glove import (
    PARAMETERS,
    GloveConfig,
    GloveLearner,
    glove_gradients,
    glove_step,
    initial_tensors,
)

V = 23
COUNTS = np.array([0, 0, 0] + [50] * (V - 3), np.int64)


def pairs_of(rows: list[tuple[int, int, float]], vocabulary_size: int = V) -> Cooccurrences:
    return Cooccurrences(np.array(rows, PAIR), vocabulary_size, window=5)


def random_pairs(seed: int = 0) -> Cooccurrences:
    rng = np.random.default_rng(seed)
    every = list(combinations_with_replacement(range(3, V), 2))
    chosen = rng.permutation(len(every))[:120]
    return pairs_of([(*every[k], float(rng.uniform(0.1, 30))) for k in chosen])


def learner(cooccurrences: Cooccurrences, seed: int = 1, **settings: Any) -> GloveLearner:
    config = GloveConfig(**{"dim": 6, "x_max": 10.0, "pairs_per_step": 32, **settings})
    return GloveLearner(cooccurrences, None, COUNTS, config, seed)


def test_one_step_by_hand() -> None:
    tensors = initial_tensors(5, 1, seed=0)
    tensors["words"][3], tensors["words"][4] = 1.0, 2.0
    tensors["contexts"][3], tensors["contexts"][4] = 3.0, 0.5
    tensors["word_bias"][3], tensors["word_bias"][4] = 0.1, 0.2
    tensors["context_bias"][3], tensors["context_bias"][4] = 0.3, 0.4
    config = GloveConfig(dim=1, x_max=16.0, power=0.5)
    loss = glove_step(tensors, torch.tensor([3]), torch.tensor([4]), torch.tensor([4.0]), config, rate=0.1)

    f = math.sqrt(4 / 16)
    there = 1.0 * 0.5 + 0.1 + 0.4 - math.log(4)
    back = 2.0 * 3.0 + 0.2 + 0.3 - math.log(4)
    assert loss == pytest.approx(f * (there**2 + back**2) / 2)

    def moved(value: float, gradient: float) -> float:
        return value - 0.1 * gradient / math.sqrt(1 + gradient**2)

    assert tensors["words"][3].item() == pytest.approx(moved(1.0, f * there * 0.5))
    assert tensors["words"][4].item() == pytest.approx(moved(2.0, f * back * 3.0))
    assert tensors["contexts"][3].item() == pytest.approx(moved(3.0, f * back * 2.0))
    assert tensors["contexts"][4].item() == pytest.approx(moved(0.5, f * there * 1.0))
    assert tensors["word_bias"][3].item() == pytest.approx(moved(0.1, f * there))
    assert tensors["context_bias"][3].item() == pytest.approx(moved(0.3, f * back))
    assert tensors["words_squares"][3].item() == pytest.approx(1 + (f * there * 0.5) ** 2)


def test_gradients_are_those_of_the_objective() -> None:
    """J / 2 over both ways of every pair, a word with itself once, differentiated by autograd."""
    config = GloveConfig(dim=6, x_max=10.0)
    tensors = {name: tensor.double() for name, tensor in initial_tensors(V, 6, seed=3).items()}
    pairs = random_pairs().pairs
    i, j = (torch.from_numpy(pairs[name].astype(np.int64)) for name in ("row", "column"))
    X = torch.from_numpy(pairs["count"].astype(np.float64))
    touched, gradients, _ = glove_gradients(tensors, i, j, X, config)

    w, c, b, d = leaves = [tensors[name].clone().requires_grad_() for name in PARAMETERS]
    there = (w[i] * c[j]).sum(1) + b[i] + d[j] - X.log()
    back = (w[j] * c[i]).sum(1) + b[j] + d[i] - X.log()
    f = (X / 10).clamp(max=1) ** 0.75
    J = (f * there**2).sum() + (f * back**2)[i != j].sum()
    for name, expected in zip(PARAMETERS, torch.autograd.grad(J / 2, leaves), strict=True):
        dense = torch.zeros_like(expected).index_copy(0, touched, gradients[name])
        torch.testing.assert_close(dense, expected)


def test_an_epoch_takes_every_pair_once_in_another_order() -> None:
    model = learner(random_pairs(), pairs_per_step=48)
    epochs = [
        np.concatenate([model._pairs(epoch * model.steps_per_epoch() + k) for k in range(model.steps_per_epoch())])
        for epoch in (0, 1)
    ]
    for epoch in epochs:
        assert np.array_equal(np.sort(epoch), np.sort(model.cooccurrences.pairs))
    assert not np.array_equal(*epochs)


def test_the_loss_falls() -> None:
    model = learner(random_pairs(), learning_rate=0.3)
    steps = 30 * model.steps_per_epoch()
    losses = [model.step(k, 1.0).loss for k in range(steps)]
    assert np.mean(losses[-10:]) < 0.1 * np.mean(losses[:10])


def test_words_that_share_neighbours_come_together() -> None:
    """Two topics of ten words: counts are high within a topic and low across."""
    topic = np.array([word % 2 for word in range(V)])
    rng = np.random.default_rng(0)
    every = combinations_with_replacement(range(3, V), 2)
    model = learner(
        pairs_of([(i, j, (40.0 if topic[i] == topic[j] else 1.0) * rng.uniform(0.5, 1.5)) for i, j in every]),
        learning_rate=0.3,
    )
    for k in range(60 * model.steps_per_epoch()):
        model.step(k, 1.0)
    vectors = torch.nn.functional.normalize(model.weights()["vectors"][3:], dim=1)
    nearest = (vectors @ vectors.T).fill_diagonal_(-1).argmax(dim=1).numpy()
    assert np.array_equal(topic[3:][nearest], topic[3:])


def test_a_killed_run_goes_on_to_the_bit() -> None:
    whole = learner(random_pairs())
    for k in range(20):
        whole.step(k, 1 - k / 20)

    killed = learner(random_pairs())
    for k in range(11):
        killed.step(k, 1 - k / 20)
    saved = {name: tensor.clone() for name, tensor in killed.state().items()}
    resumed = learner(random_pairs(), seed=1)
    resumed.load_state(saved)
    for k in range(11, 20):
        resumed.step(k, 1 - k / 20)
    for name, tensor in whole.state().items():
        assert torch.equal(tensor, resumed.state()[name]), name


def test_what_is_kept_is_the_sum_of_both_vectors() -> None:
    weights = learner(random_pairs()).weights()
    assert set(weights) == {"vectors", *PARAMETERS}
    torch.testing.assert_close(weights["vectors"], weights["words"] + weights["contexts"])


def test_a_state_of_another_shape_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"'words' has shape \(23, 6\), the model wants \(23, 5\)"):
        learner(random_pairs(), dim=5).load_state(learner(random_pairs()).state())


def test_counts_of_another_vocabulary_are_refused() -> None:
    with pytest.raises(DataError, match="counted over 9 words, the vocabulary has 23"):
        learner(pairs_of([(3, 4, 1.0)], vocabulary_size=9))


class HeldOut:
    """One sentence over and over, with the methods of Shards that evaluation uses."""

    vocabulary_size = V
    n_units = 12

    def sentences_between(self, first: int, last: int) -> list[NDArray[Any]]:
        return [np.array([3, 4, V + 1, 5], np.int32)] * 3 if first == 0 else []


def test_perplexity_of_a_model_that_knows_nothing_is_the_number_of_words() -> None:
    model = GloveLearner(random_pairs(), HeldOut(), COUNTS, GloveConfig(dim=6), seed=1)  # type: ignore[arg-type]
    model.tensors["words"].zero_()
    model.tensors["context_bias"].zero_()
    figures = model.evaluate(None)
    assert figures["perplexity"] == pytest.approx(V - 3)
    assert figures["unigram_perplexity"] == pytest.approx(V - 3)
    assert learner(random_pairs()).evaluate(None) == {}
