"""The fitting loop: enough steps however few the labels, warm-up, early stopping on dev, the best weights kept.

Several processes may fit one model. They hold the same weights, and take the same steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.batches.rows import sorted_batches
from headstart.config import Section
from headstart.encoders.kernels.memory import release_freed_memory
from headstart.errors import DataError, Remedy
from headstart.model import Model
from headstart.progress import Progress
from headstart.tasks.base import Task
from headstart.training.coordination import between_exchanges
from headstart.training.data_parallel import parts_of, shares_of
from headstart.training.optim import AdamW, OptimizerConfig
from headstart.training.ranks import Alone, Ranks
from headstart.training.schedule import rate_at
from headstart.training.seeding import seeded
from headstart.training.step_gradient import ReplicatedGradient
from headstart.transfer.answering import ModelInput
from headstart.transfer.early_stopping import EarlyStopping

POOLED_BATCHES = 8
"""Batches whose examples are sorted by length together, so that little of each is padding."""
PASS_TOKENS = 8_448
"""Tokens that a training step reads at a time, with their padding: 32 texts of 256 tokens and their marks."""
CORE_TOKENS = 2_048
"""The same for a core that trains a BERT, which keeps some 0.4 MB of each token for the gradient: 16 questions with
contexts took 2.8 GB instead of 5.9, and a step 2.10 s instead of 2.27."""

RELEASE_EVERY = 50
"""Steps after which freed memory goes back to the system."""


class FittingConfig(Section):
    """How a task is learned from its labels."""

    learning_rate: float = Field(default=3e-3, gt=0)
    """The peak for what the task adds (mix, network, softmax)."""
    encoder_rate: float = Field(default=1e-4, gt=0)
    """The peak for the encoder's own parameters, where they are trained."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Each layer of the encoder learns at this share of the rate of the layer above it."""
    epochs: float = Field(default=6.0, gt=0)
    """Passes over the labels, at most."""
    min_steps: int = Field(default=200, ge=1)
    """Steps, at least, before early stopping: few labels need many passes."""
    batch: int = Field(default=32, ge=1)
    """Examples per step."""
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Pull of the weights to zero."""
    clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    evaluations: int = Field(default=10, ge=1)
    """Evaluations on dev during the fit."""
    evaluate_examples: int = Field(default=1_000, ge=1)
    """Dev examples in such an evaluation; all of them count at the end."""
    patience: int = Field(default=3, ge=1)
    """Evaluations without a better score after which the fit stops."""
    unfreeze: float = Field(default=0.5, gt=0, le=1)
    """Gradual: share of the steps after which the whole encoder is trained."""


@dataclass(frozen=True, slots=True)
class FitStep:
    """One step of a fit, or an evaluation on dev after it."""

    number: int
    steps: int
    loss: float
    progress: float
    per_second: float
    seconds_left: float
    evaluation: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class FitResult:
    """curve: (step, score on dev) of every evaluation on the way."""

    steps: int
    best_step: int
    curve: list[tuple[int, float]]


def fit(
    model: Model, task: Task[Any, Any], how: str, train: ModelInput, dev: ModelInput | None, config: FittingConfig,
    seed: int, ranks: Ranks | None = None,
) -> Generator[Progress | FitStep, None, FitResult]:  # fmt: skip
    """Train `model` in place; it ends with the weights of its best evaluation on dev (the last ones without dev).

    ranks: the processes that divide each step and each evaluation among them. All begin with the same weights.
    """
    ranks = ranks or Alone()
    began = time.monotonic()
    steps = max(config.min_steps, math.ceil(config.epochs * len(train) / config.batch))
    stepper = Stepper(model, task, how, train, config, seed, steps, ranks)
    stopping = EarlyStopping(model, task, stepper.optimizer.parameters, dev, config, ranks, f"fit/{seed}")
    every = max(1, steps // config.evaluations)
    curve: list[tuple[int, float]] = []
    for number in range(steps):
        loss = stepper.step(number)
        if (number + 1) % RELEASE_EVERY == 0:
            release_freed_memory()
        took = time.monotonic() - began
        pace = (number + 1) / took
        evaluation = None
        if (number + 1) % every == 0 or number + 1 == steps:
            evaluation = yield from stopping.evaluate(number + 1)
            curve += [] if evaluation is None else [(number + 1, evaluation[task.metric.name])]
        left = (steps - number - 1) / pace
        event = FitStep(number + 1, steps, loss, (number + 1) / steps, pace, left, evaluation)
        yield from between_exchanges(ranks, event)
        if stopping.should_stop and number + 1 >= config.min_steps:
            break
    stopping.restore()
    model.eval()
    return FitResult(number + 1, stopping.best_step or number + 1, curve)


class Stepper:
    """Takes the steps of a fit. Of each batch every process computes its share."""

    def __init__(
        self, model: Model, task: Task[Any, Any], how: str, train: ModelInput, config: FittingConfig, seed: int,
        steps: int, ranks: Ranks,
    ) -> None:  # fmt: skip
        self.model, self.task, self.how, self.train, self.config = model, task, how, train, config
        self.seed, self.steps, self.launch = seed, steps, ranks.launch
        self.device = next(model.parameters()).device
        model.train_only(how if how != "gradual" else "finetune")
        self.in_parts = model.is_data_parallel()
        self.optimizer = AdamW(
            model,
            OptimizerConfig(learning_rate=1.0, weight_decay=config.weight_decay, clip=config.clip),
            rates(model, config).__getitem__,
        )
        self.gradient = ReplicatedGradient(list(self.optimizer.parameters.values()), ranks, self.device)
        self.groups = len(model.groups()) - 1
        self.lengths = train.example_lengths()
        self.per_epoch = -(-len(train) // config.batch)
        self.batches: list[list[int]] = []

    def step(self, number: int) -> float:
        """The loss of the whole batch, the same in all processes."""
        if self.how == "gradual":
            n_open = int(number / (self.config.unfreeze * self.steps) * (self.groups + 1))
            self.model.train_only("gradual", min(self.groups, n_open))
            self.in_parts = self.model.is_data_parallel()
        if number % self.per_epoch == 0:
            self.batches = epoch_batches(self.lengths, self.config.batch, number // self.per_epoch, self.seed)
        examples = self.batches[number % self.per_epoch]
        rows = self.train.rows_of(examples)
        if not rows:
            return 0.0  # no example of the batch has a passage
        if not self.model.training:  # a call walks through every module
            self.model.train()
        value = self._gradient(number, examples, sum(map(self.task.weight, self.train.gold(rows))))
        if not math.isfinite(value):
            lower = min(1e-3, self.config.learning_rate / 3)
            raise DataError(
                f"The loss is {value} at step {number + 1}; the learning rate is too high.",
                Remedy("Lower it, such as with {}.", f"fitting.learning_rate={lower:.1e}"),
            )
        self.optimizer.step(rate_at((number + 1) / (self.steps + 1), self.config.warmup, "linear"))
        return value

    def _gradient(self, number: int, examples: Sequence[int], total: int) -> float:
        """That of the batch; its loss. total: answers in the batch."""
        passes = self._passes(examples)
        # Counted by one process, which has the longest example of the batch, so that it has a pass.
        penalised = passes[-1][-1] if self.launch.is_first else None

        def loss_of(part: list[int]) -> Tensor:
            scores, mask = self.train.scores(part)
            loss = self.task.loss(self.model.head, scores, mask, self.train.gold(part)) / total
            return loss + self.model.penalty() if part is penalised else loss

        rank = [self.launch.rank] if self.launch.rank else []
        with seeded(seed_of(self.seed, "fit", number, *rank), self.device):
            # The gradients of all passes add up to that of the whole batch.
            value = sum(
                self.gradient.of([partial(loss_of, part) for part in parts], is_last=parts is passes[-1])
                for parts in passes
            )
        return self.gradient.sum_up([value])[0]

    def _passes(self, examples: Sequence[int]) -> list[list[list[int]]]:
        """Those of this process: see `passes_of`. An example is never divided."""
        mine = shares_of(examples, [self.lengths[i] for i in examples], self.launch.world)[self.launch.rank]
        if self.task.scores_documents:
            return document_passes(self.train, mine, self.task.words_at_once(self.model.head))
        return passes_of(self.train, mine, self.in_parts)


def passes_of(data: ModelInput, examples: Sequence[int], in_parts: bool) -> list[list[list[int]]]:
    """The rows of some examples in passes, each with the rows of every core apart. in_parts: use all cores.

    A trained BERT's passes have CORE_TOKENS for each core. Otherwise examples of one passage each make one pass; all
    windows of long documents might not fit into memory: a pass has PASS_TOKENS at most, or as many tokens as one
    passage of each example.
    """
    rows = data.rows_of(examples)
    lengths = [data.lengths[row] for row in rows]
    longest = max(lengths, default=0)
    most = CORE_TOKENS * torch.get_num_threads() if in_parts else max(PASS_TOKENS, longest * len(examples))
    passes = [rows] if rows else []
    if longest * len(rows) > most:
        passes = [[rows[i] for i in batch] for batch in sorted_batches(lengths, most)]
    return [parts_of(own, data.lengths) if in_parts else [own] for own in passes]


def document_passes(
    data: ModelInput, examples: Sequence[int], words_at_once: int | None = None
) -> list[list[list[int]]]:  # fmt: skip
    """Passes that have consecutive rows of one example each, all of them if they have PASS_TOKENS at most, with their
    padding. words_at_once: as many tokens at most, but always a row."""
    tokens = PASS_TOKENS if words_at_once is None else min(PASS_TOKENS, words_at_once)
    passes: list[list[list[int]]] = []
    for example in examples:
        rows = list(data.rows[example])
        longest = max((data.lengths[row] for row in rows), default=0)
        most = max(1, tokens // max(1, longest))
        passes += [[rows[first : first + most]] for first in range(0, len(rows), most)]
    return passes


def rates(model: Model, config: FittingConfig) -> dict[str, float]:
    """Each parameter's peak learning rate: the head's own, then the encoder's, lower and lower down its layers."""
    *encoder, head = model.groups()
    found = {name: config.learning_rate for name, _ in head}
    for depth, group in enumerate(reversed(encoder)):
        found |= {name: config.encoder_rate * config.layer_decay**depth for name, _ in group}
    return found


def epoch_batches(lengths: Sequence[int], batch: int, epoch: int, seed: int) -> list[list[int]]:
    """The examples of each step of an epoch. Every epoch has its own order; a batch holds examples of like length."""
    rng = np.random.default_rng(seed_of(seed, "order", epoch))
    order = rng.permutation(len(lengths))
    batches: list[list[int]] = []
    for first in range(0, len(order), batch * POOLED_BATCHES):
        pool = sorted(map(int, order[first : first + batch * POOLED_BATCHES]), key=lengths.__getitem__)
        batches += [pool[start : start + batch] for start in range(0, len(pool), batch)]
    return [batches[i] for i in rng.permutation(len(batches))]
