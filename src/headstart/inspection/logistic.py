"""Multinomial logistic regression on standardised features: the linear probe.

Letters: N examples, D features, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

PENALTIES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Of the L2 term, strongest first: each fit starts from the one before, so that the whole path costs little more than
its last fit. Which is best depends on the width of the layer and on the task, and no single one is fair to all."""
ITERATIONS = 60
LARGEST_GRADIENT, GRADIENT_PER_PENALTY = 1e-3, 0.1
"""A fit ends below the lesser of the two, the second times its penalty: the error of the weights is about the gradient
over the penalty, and a fixed bound would let weak penalties end where the one before did. With a much smaller bound and
200 iterations, tags of 20,000 words took four times as long, and accuracies moved by less than 0.1 points."""
SMALLEST_DEVIATION = 1e-6
"""A feature that varies less is constant, up to rounding."""


@dataclass(frozen=True, slots=True)
class Logistic:
    """A fitted probe. mean, deviation: (D,) of the training features; weights: (D, C); bias: (C,)."""

    mean: Tensor
    deviation: Tensor
    weights: Tensor
    bias: Tensor

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        """The number of the most probable class of each row, (N,)."""
        scores = torch.addmm(self.bias, (torch.from_numpy(X) - self.mean) / self.deviation, self.weights)
        found: NDArray[np.int64] = scores.argmax(dim=1).numpy()
        return found


def fit_logistic(X: NDArray[np.float32], y: NDArray[np.int64], classes: int, held: NDArray[np.bool_]) -> Logistic:
    """The regression with the L2 penalty under which the held-out rows are most probable.

    X: (N, D); y: (N,), from 0 to classes - 1; held: (N,), True at the rows that choose the penalty and are not learned.
    """
    features, gold, apart = torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(held)
    mean, deviation = features[~apart].mean(dim=0), features[~apart].std(dim=0, correction=0)
    deviation = torch.where(deviation > SMALLEST_DEVIATION, deviation, torch.inf)  # a constant feature becomes 0
    features = (features - mean) / deviation
    learned, learned_gold = features[~apart], gold[~apart]
    # Whatever the penalty, a class that no learned row shows costs the more the longer the fit.
    fair = apart & torch.isin(gold, learned_gold)
    apart = fair if fair.any() else ~apart
    weights = torch.zeros(X.shape[1], classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    best, lowest = (weights.detach().clone(), bias.detach().clone()), float("inf")
    for penalty in PENALTIES:
        minimise(learned, learned_gold, weights, bias, penalty)
        with torch.no_grad():
            loss = F.cross_entropy(torch.addmm(bias, features[apart], weights), gold[apart]).item()
        if loss >= lowest:
            break  # the held-out loss along the path falls, then rises
        best, lowest = (weights.detach().clone(), bias.detach().clone()), loss
    return Logistic(mean, deviation, *best)


def minimise(X: Tensor, y: Tensor, weights: Tensor, bias: Tensor, penalty: float) -> None:
    """The mean cross-entropy plus penalty / 2 * |weights|^2, by L-BFGS from where the weights are."""
    optimizer = torch.optim.LBFGS(
        [weights, bias],
        max_iter=ITERATIONS,
        tolerance_grad=min(LARGEST_GRADIENT, GRADIENT_PER_PENALTY * penalty),
        line_search_fn="strong_wolfe",
    )

    def loss() -> float:
        total = F.cross_entropy(torch.addmm(bias, X, weights), y) + penalty / 2 * weights.square().sum()
        weights.grad, bias.grad = torch.autograd.grad(total, [weights, bias])
        return total.item()

    optimizer.step(loss)  # type: ignore[no-untyped-call]
