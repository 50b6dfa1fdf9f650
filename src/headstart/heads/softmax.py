"""The output softmax over a vocabulary: exact, in chunks of rows, or over a sample of words while training.

Letters: N outputs, D width, V vocabulary, S sampled words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from headstart.cores import alone
from headstart.encoders.kernels.linear import multiply
from headstart.encoders.kernels.memory import Arena
from headstart.errors import ConfigError

arena = Arena()
CHUNK = 512
"""Rows of logits computed at a time: over 30,000 words they are 61 MB, where 4,096 rows would be 490 MB."""


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """total: summed negative log likelihood in nats, with its gradient; correct: rows whose best word is the target."""

    total: Tensor
    correct: int


def softmax_loss(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, chunk: int = CHUNK) -> SoftmaxLoss:
    """cross_entropy(h @ weight.T + bias, targets, reduction="sum") that holds `chunk` rows of logits at a time.

    h: (N, D); weight: (V, D); bias: (V,) or None; targets: (N,).
    """
    if bias is None:
        bias = weight.new_zeros(len(weight))
    with torch.autocast(h.device.type, enabled=False):  # sums over a vocabulary want float32
        total, correct = _ChunkedSoftmaxLoss.apply(h.float(), weight, bias, targets, chunk)  # type: ignore[no-untyped-call]
    return SoftmaxLoss(total, int(correct))


class _ChunkedSoftmaxLoss(torch.autograd.Function):
    """Computes the gradient with the logits, in `forward`, and only scales it in `backward`.

    The gradient with respect to the logits is softmax - one_hot, a few operations on an array that is in the cache at
    that moment. Computing it in `backward` would mean to keep all logits, or to multiply h by the weights again.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, chunk: int
    ) -> tuple[Tensor, Tensor]:
        needs_h, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        grad_h = torch.empty_like(h) if needs_h else None
        grad_weight = torch.empty_like(weight) if needs_weight else None
        grad_bias = torch.zeros_like(bias) if needs_bias else None
        total = h.new_zeros(())
        correct = torch.zeros((), dtype=torch.int64, device=h.device)
        logits_buffer = arena.take("logits", min(chunk, len(h)), len(weight), h)
        for start in range(0, len(h), chunk):
            rows, gold = h[start : start + chunk], targets[start : start + chunk, None]
            logits = multiply(rows, weight.t(), logits_buffer[: len(rows)]).add_(bias)
            # Read before the logits are overwritten below. Subtracting the row's maximum keeps exp from overflowing:
            # log sum exp(l) = best + log sum exp(l - best).
            gold_logits = logits.gather(1, gold)
            best, best_word = logits.max(dim=1, keepdim=True)
            correct += (best_word == gold).sum()
            exponentials = logits.sub_(best).exp_()
            normaliser = exponentials.sum(dim=1, keepdim=True)
            total += (normaliser.log() + best - gold_logits).sum()
            if not (needs_h or needs_weight or needs_bias):
                continue
            # d loss / d logits = softmax - one_hot(gold), still in the same array.
            slope = exponentials.div_(normaliser)
            slope.scatter_add_(1, gold, slope.new_full((), -1.0).expand_as(gold))
            if grad_h is not None:
                multiply(slope, weight, grad_h[start : start + chunk])
            # The first chunk writes the gradient and the others add to it, which saves clearing (V, D) numbers.
            if grad_weight is not None and not start:
                multiply(slope.t(), rows, grad_weight)
            elif grad_weight is not None:
                grad_weight.addmm_(slope.t(), rows)
            if grad_bias is not None:
                grad_bias += slope.sum(dim=0)
        arena.give("logits", logits_buffer)
        if grad_weight is not None and not len(h):
            grad_weight.zero_()
        ctx.gradients = (grad_h, grad_weight, grad_bias)
        ctx.mark_non_differentiable(correct)
        return total, correct

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        # Scaled copies, because `backward` may be called twice on a retained graph.
        scaled = tuple(None if g is None else g * grad_total for g in ctx.gradients)
        return (*scaled, None, None)


class LogUniform:
    """Draws words in proportion to log((k + 2) / (k + 1)), close to word frequency when ids are sorted by frequency."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size

    def probability(self, ids: Tensor) -> Tensor:
        """log1p(1 / (k + 1)) is log((k + 2) / (k + 1)); the sum over k < V telescopes to log(V + 1)."""
        return torch.log1p(1 / (ids.double() + 1)) / math.log(self.vocabulary_size + 1)

    def sample(self, n: int, generator: torch.Generator | None) -> tuple[Tensor, int]:
        """n distinct words, in the order first drawn, and how many draws with replacement that took."""
        if n >= self.vocabulary_size:
            raise ConfigError(
                f"The sampled softmax needs fewer samples than words; got {n} samples of {self.vocabulary_size} words. "
                "Use the full softmax."
            )
        # Draw with replacement, a block at a time, until n distinct words have come up.
        drawn = torch.empty(0, dtype=torch.int64)
        while True:
            draws = torch.rand(max(2 * n, 64), generator=generator, dtype=torch.float64)
            # Inverse transform sampling: the distribution function is P(word < k) = log(k + 1) / log(V + 1). Rounding
            # may give V at the upper end, hence the clamp.
            words = (draws * math.log(self.vocabulary_size + 1)).exp().long() - 1
            drawn = torch.cat([drawn, words.clamp_(0, self.vocabulary_size - 1)])
            first = first_occurrences(drawn)
            if len(first) >= n:
                return drawn[first[:n]], int(first[n - 1]) + 1

    def expected_count(self, ids: Tensor, tries: int) -> Tensor:
        """How often a word is among the distinct words of so many draws, on average: 1 - (1 - p)^tries."""
        return -torch.expm1(tries * torch.log1p(-self.probability(ids)))


def first_occurrences(values: Tensor) -> Tensor:
    """The sorted positions at which a value appears for the first time: the least position of each distinct value."""
    _, inverse = torch.unique(values, return_inverse=True)
    position = torch.arange(len(values))
    first = torch.full((int(inverse.max()) + 1,), len(values)).scatter_reduce_(0, inverse, position, "amin")
    return first.sort().values


def sampled_softmax_loss(
    h: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    sampler: LogUniform,
    samples: int,
    generator: torch.Generator | None,
    chunk: int = CHUNK,
) -> Tensor:
    """Summed loss of telling each target from one shared sample of words (Jean et al. 2015). h: (N, D); targets: (N,).

    Logits are lowered by the log of each word's expected count, so that the loss estimates the full softmax; a sampled
    word that is the row's own target is left out. Only the sampled rows of `weight` and the targets' are read and get a
    gradient; in a part of a data-parallel step (`headstart.cores.alone`) that gradient is a sparse tensor.
    """
    h = h.float()
    rows_of_weight = partial(F.embedding, weight=weight, sparse=alone())
    # Importance correction: a frequent word is in the sample more often than a rare one. Targets are corrected by their
    # own expected count, as if they had been drawn, so that target and noise are on the same scale.
    negatives, tries = sampler.sample(samples, generator)
    log_expected = sampler.expected_count(negatives, tries).log().to(h)
    log_expected_gold = sampler.expected_count(targets.cpu(), tries).log().to(h)
    negatives = negatives.to(h.device)
    gold_logits = (h * rows_of_weight(targets)).sum(dim=1) + bias[targets] - log_expected_gold
    negative_bias = bias.index_select(0, negatives) - log_expected
    # Where in the sample each target is, by binary search; an (N, S) comparison would cost as much as the logits.
    ordered, order = negatives.sort()
    place = torch.searchsorted(ordered, targets).clamp(max=len(ordered) - 1)
    own = torch.where(ordered[place] == targets, order[place], -1)
    with torch.autocast(h.device.type, enabled=False):  # sums over many words want float32
        total: Tensor = _LossAgainstSample.apply(  # type: ignore[no-untyped-call]
            h, rows_of_weight(negatives), negative_bias, gold_logits, own, chunk
        )
    return total


class _LossAgainstSample(torch.autograd.Function):
    """Summed -log(exp(gold) / (exp(gold) + sum of exp(logits of the sample))), `chunk` rows of logits at a time.

    h: (N, D); weight: (S, D); bias: (S,); gold: (N,) logits; own: (N,), the place of a row's own target in the sample,
    -1 if it is not there: that logit is left out. As above, the gradient is computed with the logits.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, gold: Tensor, own: Tensor, chunk: int) -> Tensor:
        learns = any(ctx.needs_input_grad)
        grads = torch.empty_like(h), torch.zeros_like(weight), torch.zeros_like(bias), torch.empty_like(gold)
        grad_h, grad_weight, grad_bias, grad_gold = grads
        total = h.new_zeros(())
        buffer = arena.take("sampled logits", min(chunk, len(h)), len(weight), h)
        for start in range(0, len(h), chunk):
            rows, gold_here, own_here = (x[start : start + chunk] for x in (h, gold, own))
            logits = multiply(rows, weight.t(), buffer[: len(rows)]).add_(bias)
            # exp(-inf) = 0 takes a row's own target out of the sum, and out of the gradient.
            drawn = (own_here >= 0).nonzero().squeeze(1)
            logits[drawn, own_here[drawn]] = -torch.inf
            # The target's logit is one more column of the softmax, kept apart because it differs in every row.
            best = torch.maximum(logits.amax(dim=1), gold_here)
            exponentials = logits.sub_(best[:, None]).exp_()
            gold_share = (gold_here - best).exp()
            normaliser = exponentials.sum(dim=1) + gold_share
            total += (normaliser.log() + best - gold_here).sum()
            if learns:
                slope = exponentials.div_(normaliser[:, None])
                multiply(slope, weight, grad_h[start : start + chunk])
                grad_weight.addmm_(slope.t(), rows)
                grad_bias += slope.sum(dim=0)
                grad_gold[start : start + chunk] = gold_share / normaliser - 1  # softmax - 1 at the target
        arena.give("sampled logits", buffer)
        ctx.gradients = grads
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor) -> tuple[Tensor | None, ...]:
        return (*(grad * grad_total for grad in ctx.gradients), None, None)
