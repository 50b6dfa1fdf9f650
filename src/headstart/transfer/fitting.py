"""Fitting a labelled task: enough steps however few the labels, warm-up, early stopping on dev, the best step kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from headstart.batches.order import seed_of
from headstart.batches.rows import sorted_batches
from headstart.config import Section
from headstart.errors import DataError
from headstart.metrics import accuracy
from headstart.pretraining.learner import copy_state
from headstart.training.data_parallel import DataParallelGradient, parts_of
from headstart.training.optim import AdamW, OptimizerConfig
from headstart.training.schedule import rate_at
from headstart.training.seeding import seeded

POOLED_BATCHES = 8
"""Batches whose examples are sorted by length together, so that little of each is padding."""

EVALUATION_UNITS = 2_048
"""Units in a batch that is only predicted."""


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
    """Looks at dev during the fit."""
    evaluate_examples: int = Field(default=1_000, ge=1)
    """Dev examples in such a look; all of them count at the end."""
    patience: int = Field(default=3, ge=1)
    """Looks without a better score after which the fit stops."""
    unfreeze: float = Field(default=0.5, gt=0, le=1)
    """Gradual: share of the steps after which the whole encoder is trained."""


@dataclass(frozen=True, slots=True)
class FitStep:
    """One step of a fit, or a look at dev after it."""

    number: int
    steps: int
    loss: float
    progress: float
    per_second: float
    seconds_left: float
    evaluation: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class FitResult:
    steps: int
    best_step: int
    seconds: float


class TaskModel(Protocol):
    """What is fitted: see headstart.model.Model."""

    def train_only(self, how: str, stages: int | None = None) -> None: ...
    def groups(self) -> list[list[tuple[str, nn.Parameter]]]: ...
    def penalty(self) -> Tensor: ...
    def divides_batches(self) -> bool: ...


Logits = Callable[[Sequence[int]], Tensor]
"""Rows of one set of examples -> (B, C)."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A set of examples as the model sees it: logits of any rows, their lengths, their labels."""

    logits: Logits
    lengths: Sequence[int]
    gold: NDArray[np.int64]


def fit(
    model: nn.Module, how: str, train: Labelled, dev: Labelled | None, config: FittingConfig, seed: int
) -> Generator[FitStep, None, FitResult]:
    """Train `model` in place; it ends with the weights of its best look at dev (the last ones without dev)."""
    task: TaskModel = model  # type: ignore[assignment]
    began = time.monotonic()
    steps = max(config.min_steps, math.ceil(config.epochs * len(train.gold) / config.batch))
    task.train_only(how if how != "gradual" else "finetune")
    optimizer = AdamW(
        model,
        OptimizerConfig(learning_rate=1.0, weight_decay=config.weight_decay, clip=config.clip),
        rates(task, config).__getitem__,
    )
    shared = DataParallelGradient(list(optimizer.parameters.values()))
    watch = Watch(model, optimizer.parameters, dev, config)
    every = max(1, steps // config.evaluations)
    stages = len(task.groups()) - 1
    per_epoch = -(-len(train.gold) // config.batch)
    in_parts = task.divides_batches()
    batches: list[list[int]] = []
    for number in range(steps):
        if how == "gradual":
            task.train_only("gradual", min(stages, int(number / (config.unfreeze * steps) * (stages + 1))))
            in_parts = task.divides_batches()
        if number % per_epoch == 0:
            batches = epoch_batches(train.lengths, config.batch, number // per_epoch, seed)
        rows = batches[number % per_epoch]
        parts = parts_of(rows, train.lengths) if in_parts else [rows]
        loss = step(model, optimizer, shared, train, parts, number, steps, config, seed)
        took = time.monotonic() - began
        pace = (number + 1) / took
        evaluation = None
        if (number + 1) % every == 0 or number + 1 == steps:
            evaluation = watch.look(number + 1)
        yield FitStep(number + 1, steps, loss, (number + 1) / steps, pace, (steps - number - 1) / pace, evaluation)
        if watch.tired and number + 1 >= config.min_steps:
            break
    watch.restore()
    model.eval()
    return FitResult(number + 1, watch.best_step or number + 1, time.monotonic() - began)


def step(
    model: nn.Module,
    optimizer: AdamW,
    shared: DataParallelGradient,
    train: Labelled,
    parts: list[list[int]],
    number: int,
    steps: int,
    config: FittingConfig,
    seed: int,
) -> float:
    """parts: the rows of the batch, those of each core apart."""
    if not model.training:  # it walks through every module
        model.train()
    device = next(model.parameters()).device
    task: TaskModel = model  # type: ignore[assignment]
    with seeded(seed_of(seed, "fit", number), device):
        examples = sum(map(len, parts))

        def loss_of(part: list[int]) -> Tensor:
            gold = torch.from_numpy(train.gold[part]).to(device)
            return F.cross_entropy(train.logits(part), gold, reduction="sum") / examples

        losses = [partial(loss_of, part) for part in parts]
        value = shared.of([*losses[:-1], lambda: losses[-1]() + task.penalty()])
    if not math.isfinite(value):
        raise DataError(
            f"The loss is {value} at step {number + 1}; the learning rate is too high. Lower it, such as with "
            f"--set fitting.learning_rate={config.learning_rate / 3:.1e}."
        )
    optimizer.step(rate_at((number + 1) / (steps + 1), config.warmup, "linear"))
    return value


def rates(task: TaskModel, config: FittingConfig) -> dict[str, float]:
    """Each parameter's peak learning rate: the head's own, then the encoder's, lower and lower down its layers."""
    *encoder, head = task.groups()
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


class Watch:
    """Looks at dev, remembers the best weights, and knows when to give up."""

    def __init__(
        self, model: nn.Module, trained: dict[str, nn.Parameter], dev: Labelled | None, config: FittingConfig
    ) -> None:
        self.model, self.trained, self.dev, self.config = model, trained, dev, config
        self.best: tuple[float, float] | None = None
        self.best_step = 0
        self.since = 0
        self.kept: dict[str, Tensor] = {}
        self.rows: list[int] = []
        if dev is not None:
            # A fixed choice spread over the whole file, which may list one class after the other.
            n = len(dev.gold)
            self.rows = [int(i) for i in np.unique(np.linspace(0, n - 1, min(n, config.evaluate_examples)).round())]

    @property
    def tired(self) -> bool:
        return self.since >= self.config.patience

    def look(self, step: int) -> dict[str, float] | None:
        if self.dev is None:
            return None
        probabilities = probabilities_of(self.model, self.dev, self.rows)
        gold = self.dev.gold[self.rows]
        right = accuracy(gold, probabilities.argmax(1))
        sure = float(-np.log(np.maximum(probabilities[np.arange(len(gold)), gold], 1e-12)).mean())
        # Equal accuracy, as small dev sets often give: the step that is less wrong in its doubts is the better one.
        if self.best is None or (right, -sure) > self.best:
            self.best, self.best_step, self.since = (right, -sure), step, 0
            self.kept = {name: p.detach().clone() for name, p in self.trained.items()}
        else:
            self.since += 1
        return {"accuracy": right, "loss": sure}

    def restore(self) -> None:
        if self.kept:
            copy_state(self.trained, self.kept)


def probabilities_of(model: nn.Module, examples: Labelled, rows: Sequence[int] | None = None) -> NDArray[np.float32]:
    """(N, C), in the order of the rows (all of them by default)."""
    chosen = list(range(len(examples.lengths))) if rows is None else list(rows)
    model.eval()
    found: dict[int, NDArray[np.float32]] = {}
    with torch.no_grad():
        for batch in sorted_batches([examples.lengths[i] for i in chosen], EVALUATION_UNITS):
            logits = examples.logits([chosen[i] for i in batch])
            for place, row in zip(batch, logits.softmax(-1).cpu().numpy(), strict=True):
                found[place] = row
    return np.stack([found[place] for place in range(len(chosen))])
