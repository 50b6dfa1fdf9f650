"""The fitting loop: enough steps however few the labels, warm-up, early stopping on dev, the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from headstart.batches.order import seed_of
from headstart.batches.rows import sorted_batches
from headstart.config import Section
from headstart.encoders.kernels.memory import release_freed_memory
from headstart.errors import DataError, Remedy
from headstart.model import Model
from headstart.tasks.base import Passage, Scores, Target, Task
from headstart.training.data_parallel import DataParallelGradient, parts_of
from headstart.training.optim import AdamW, OptimizerConfig
from headstart.training.schedule import rate_at
from headstart.training.seeding import seeded
from headstart.training.tensors import copy_state

POOLED_BATCHES = 8
"""Batches whose examples are sorted by length together, so that little of each is padding."""
EVALUATION_TOKENS = 2_048
"""Tokens in a batch that is only predicted."""
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


RowScores = Callable[[Sequence[int]], tuple[Tensor, Tensor]]
"""Rows of one set of examples -> the head's scores, (B, C) or (B, W, C), and the mask of their words, (B, W)."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A set of examples as the model reads it: each example is one or more rows, one for each of its passages.

    scores: of any rows; lengths: tokens of each row; rows: those of each example; targets: one for each row, or None
    where the examples have no gold answers.
    """

    scores: RowScores
    lengths: Sequence[int]
    examples: Sequence[Any]
    passages: Sequence[Sequence[Passage]]
    rows: Sequence[range]
    targets: Sequence[Target] | None

    def __len__(self) -> int:
        return len(self.examples)

    def example_lengths(self) -> list[int]:
        return [sum(self.lengths[row] for row in rows) for rows in self.rows]

    def rows_of(self, examples: Sequence[int]) -> list[int]:
        return [row for example in examples for row in self.rows[example]]

    def gold(self, rows: Sequence[int]) -> list[Target]:
        if self.targets is None:
            raise DataError("These examples have no gold answers, so there is nothing to learn from or to score.")
        return [self.targets[row] for row in rows]


def fit(
    model: Model, task: Task[Any, Any], how: str, train: ModelInput, dev: ModelInput | None, config: FittingConfig,
    seed: int,
) -> Generator[FitStep, None, FitResult]:  # fmt: skip
    """Train `model` in place; it ends with the weights of its best evaluation on dev (the last ones without dev)."""
    began = time.monotonic()
    steps = max(config.min_steps, math.ceil(config.epochs * len(train) / config.batch))
    model.train_only(how if how != "gradual" else "finetune")
    optimizer = AdamW(
        model,
        OptimizerConfig(learning_rate=1.0, weight_decay=config.weight_decay, clip=config.clip),
        rates(model, config).__getitem__,
    )
    shared = DataParallelGradient(list(optimizer.parameters.values()))
    stopping = EarlyStopping(model, task, optimizer.parameters, dev, config)
    every = max(1, steps // config.evaluations)
    groups = len(model.groups()) - 1
    lengths = train.example_lengths()
    per_epoch = -(-len(train) // config.batch)
    in_parts = model.is_data_parallel()
    batches: list[list[int]] = []
    curve: list[tuple[int, float]] = []
    for number in range(steps):
        if how == "gradual":
            model.train_only("gradual", min(groups, int(number / (config.unfreeze * steps) * (groups + 1))))
            in_parts = model.is_data_parallel()
        if number % per_epoch == 0:
            batches = epoch_batches(lengths, config.batch, number // per_epoch, seed)
        examples = batches[number % per_epoch]
        if task.scores_documents:
            passes = document_passes(train, examples, task.words_at_once(model.head))
        else:
            passes = passes_of(train, examples, in_parts)
        loss = step(model, task, optimizer, shared, train, passes, number, steps, config, seed)
        if (number + 1) % RELEASE_EVERY == 0:
            release_freed_memory()
        took = time.monotonic() - began
        pace = (number + 1) / took
        evaluation = None
        if (number + 1) % every == 0 or number + 1 == steps:
            evaluation = stopping.evaluate(number + 1)
            curve += [] if evaluation is None else [(number + 1, evaluation[task.metric.name])]
        yield FitStep(number + 1, steps, loss, (number + 1) / steps, pace, (steps - number - 1) / pace, evaluation)
        if stopping.should_stop and number + 1 >= config.min_steps:
            break
    stopping.restore()
    model.eval()
    return FitResult(number + 1, stopping.best_step or number + 1, curve)


def step(
    model: Model,
    task: Task[Any, Any],
    optimizer: AdamW,
    shared: DataParallelGradient,
    train: ModelInput,
    passes: list[list[list[int]]],
    number: int,
    steps: int,
    config: FittingConfig,
    seed: int,
) -> float:
    """passes: see `passes_of`."""
    if not passes:
        return 0.0  # no example of the batch has a passage
    if not model.training:  # a call walks through every module
        model.train()
    device = next(model.parameters()).device
    total = sum(task.weight(target) for parts in passes for part in parts for target in train.gold(part))
    last = passes[-1][-1]

    def loss_of(part: list[int]) -> Tensor:
        scores, mask = train.scores(part)
        loss = task.loss(model.head, scores, mask, train.gold(part)) / total
        return loss + model.penalty() if part is last else loss

    with seeded(seed_of(seed, "fit", number), device):
        # The gradients of all passes add up to that of the whole batch.
        value = sum(shared.of([partial(loss_of, part) for part in parts]) for parts in passes)
    if not math.isfinite(value):
        lower = min(1e-3, config.learning_rate / 3)
        raise DataError(
            f"The loss is {value} at step {number + 1}; the learning rate is too high.",
            Remedy("Lower it, such as with {}.", f"fitting.learning_rate={lower:.1e}"),
        )
    optimizer.step(rate_at((number + 1) / (steps + 1), config.warmup, "linear"))
    return value


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


class EarlyStopping:
    """Evaluates on dev, keeps the best weights, and says when to stop."""

    def __init__(
        self, model: Model, task: Task[Any, Any], trained: dict[str, nn.Parameter], dev: ModelInput | None,
        config: FittingConfig,
    ) -> None:  # fmt: skip
        self.model, self.task, self.trained, self.dev, self.config = model, task, trained, dev, config
        self.best: tuple[float, float] | None = None
        self.best_step = 0
        self.since_best = 0
        self.kept: dict[str, Tensor] = {}
        self.examples: list[int] = []
        if dev is not None:
            # A fixed choice spread over the whole file, which may list one class after the other.
            n = len(dev)
            self.examples = [int(i) for i in np.unique(np.linspace(0, n - 1, min(n, config.evaluate_examples)).round())]

    @property
    def should_stop(self) -> bool:
        return self.since_best >= self.config.patience

    def evaluate(self, step: int) -> dict[str, float] | None:
        if self.dev is None:
            return None
        answers, loss = answers_of(self.model, self.task, self.dev, self.examples, with_loss=True)
        gold = [self.dev.examples[i] for i in self.examples]
        score = self.task.metric.of(self.task.all_counts(gold, answers))
        # Small dev sets often give equal scores: the step with the lower loss is then the better one.
        if self.best is None or (score, -loss) > self.best:
            self.best, self.best_step, self.since_best = (score, -loss), step, 0
            self.kept = {name: p.detach().clone() for name, p in self.trained.items()}
        else:
            self.since_best += 1
        return {self.task.metric.name: score, "loss": loss}

    def restore(self) -> None:
        if self.kept:
            copy_state(self.trained, self.kept)


def answers_of(
    model: Model, task: Task[Any, Any], data: ModelInput, examples: Sequence[int] | None = None, *,
    with_loss: bool = False,
) -> tuple[list[Any], float]:  # fmt: skip
    """Answers in the order of `examples` (all by default), and their mean loss, which is NaN unless asked for, and for
    tasks whose loss reads several passages together."""
    chosen = list(range(len(data))) if examples is None else list(examples)
    rows = data.rows_of(chosen)
    model.eval()
    found: dict[int, Scores] = {}
    loss, weight = 0.0, 0
    with torch.no_grad():
        for batch in sorted_batches([data.lengths[row] for row in rows], EVALUATION_TOKENS):
            numbers = [rows[i] for i in batch]
            scores, mask = data.scores(numbers)
            if with_loss and not task.scores_documents:
                gold = data.gold(numbers)
                loss += float(task.loss(model.head, scores, mask, gold))
                weight += sum(task.weight(target) for target in gold)
            values, lengths = scores.cpu().numpy(), mask.sum(dim=1).tolist()
            for place, row in enumerate(numbers):
                found[row] = values[place, : lengths[place]].copy() if task.scores_words else values[place]
    of_examples = [[found[row] for row in data.rows[example]] for example in chosen]
    passages = [data.passages[example] for example in chosen]
    answers = task.decode(model.head, [data.examples[example] for example in chosen], passages, of_examples)
    return answers, loss / weight if with_loss and weight else math.nan
