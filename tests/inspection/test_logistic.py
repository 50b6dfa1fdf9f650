from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from headstart.inspection.logistic import fit_logistic, minimise


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(4)


def test_classes_apart_on_a_line_are_learned_whatever_the_scale(rng: np.random.Generator) -> None:
    """Three clusters at -1, 0 and 1 of a feature, beside one that is a million times larger and says nothing."""
    y = np.arange(90) % 3
    X = np.stack([y - 1 + rng.normal(0, 0.05, 90), rng.normal(0, 1e6, 90)], axis=1).astype(np.float32)
    held = np.arange(90) >= 80
    assert (fit_logistic(X, y, 3, held).predict(X) == y).all()


def test_a_constant_feature_changes_nothing(rng: np.random.Generator) -> None:
    y = np.arange(40) % 2
    X = (y + rng.normal(0, 0.3, 40)).astype(np.float32)[:, None]
    held = np.arange(40) >= 30
    beside = np.concatenate([X, np.full((40, 1), 7.0, np.float32)], axis=1)
    alone, both = fit_logistic(X, y, 2, held), fit_logistic(beside, y, 2, held)
    assert both.weights[1].tolist() == [0.0, 0.0]
    assert (both.predict(beside) == alone.predict(X)).all()


def test_without_information_the_more_frequent_class_is_the_answer(rng: np.random.Generator) -> None:
    """With more features than examples, only a strong penalty keeps the probe from learning noise by heart."""
    X = rng.normal(size=(60, 100)).astype(np.float32)
    y = (np.arange(60) % 4 == 0).astype(np.int64)
    found = fit_logistic(X, y, 2, np.arange(60) >= 40).predict(rng.normal(size=(200, 100)).astype(np.float32))
    assert (found == 0).mean() > 0.9


def test_a_class_that_only_held_out_rows_show_does_not_choose_the_penalty(rng: np.random.Generator) -> None:
    y = np.arange(60) % 2
    X = (y + rng.normal(0, 0.01, 60)).astype(np.float32)[:, None]
    held = np.arange(60) >= 40
    without = fit_logistic(X, y, 3, held)
    y[59] = 2
    assert (fit_logistic(X, y, 3, held).predict(X)[:40] == without.predict(X)[:40]).all()
    assert (without.predict(X)[:40] == y[:40]).all()


def test_a_weak_penalty_does_not_end_where_the_one_before_did(rng: np.random.Generator) -> None:
    """On separable classes, a tenth of the penalty gives clearly longer weights."""
    y = torch.from_numpy(np.arange(200) % 4)
    X = torch.eye(4)[y] + torch.from_numpy(rng.normal(0, 0.05, (200, 4)).astype(np.float32))
    weights, bias = (torch.zeros(shape, requires_grad=True) for shape in ((4, 4), (4,)))
    lengths = []
    for penalty in (1e-2, 1e-3, 1e-4):
        minimise(X, y, weights, bias, penalty)
        lengths.append(weights.norm().item())
        loss = F.cross_entropy(torch.addmm(bias, X, weights), y) + penalty / 2 * weights.square().sum()
        assert torch.autograd.grad(loss, weights)[0].abs().max() < penalty
    assert lengths[1] > 1.3 * lengths[0]
    assert lengths[2] > 1.3 * lengths[1]
