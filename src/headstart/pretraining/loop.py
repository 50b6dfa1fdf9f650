"""The loop: how long a run goes on, and one value per step. It computes; its caller saves, logs and draws."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import BeforeValidator, Field, model_validator

from headstart.config import Section
from headstart.pretraining.learner import Learner, StepResult
from headstart.training.schedule import Decay, as_seconds, rate_at

LENGTHS = ("steps", "epochs", "budget")
"""The settings that say how long a run is; they exclude each other."""


class TrainingConfig(Section):
    """How long a run is, its batches, its learning-rate schedule, and how often it is evaluated and saved."""

    steps: int | None = Field(default=None, ge=1)
    """Optimiser steps; such a run is repeatable, and resumable, to the bit."""
    epochs: float | None = Field(default=None, gt=0)
    """Passes over the text."""
    budget: Annotated[float | None, BeforeValidator(as_seconds), Field(gt=0)] = None
    """Seconds, or 10m or 1h30m, for everything: reading the text, training, the last evaluation."""
    batch: int = Field(default=4096, ge=1)
    """Tokens in a batch (ELMo), or pieces: sequences times their length (BERT)."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are summed into one step."""
    warmup: float = Field(default=0.1, ge=0, le=1)
    """Share of the run over which the learning rate rises."""
    decay: Decay = "linear"
    """How it falls afterwards: linear, cosine or constant."""
    evaluations: int = Field(default=10, ge=1)
    """How often the held-out text is measured on the way."""
    evaluate_units: int = Field(default=20_000, ge=1)
    """Tokens of held-out text in each of those; the last measurement takes all of it."""
    save_seconds: float = Field(default=60.0, ge=0)
    """Time between checkpoints (more where writing one takes long)."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """float32, bfloat16, or auto: bfloat16 where the hardware multiplies it."""

    @model_validator(mode="after")
    def one_length(self) -> TrainingConfig:
        given = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"--steps, --epochs and --budget exclude each other; got {' and '.join(given)}")
        return self


@dataclass(slots=True)
class Clock:
    """Seconds spent on a run, over all the processes that worked on it."""

    spent_before: float
    started: float

    @classmethod
    def start(cls, spent_before: float = 0.0) -> Clock:
        return cls(spent_before, time.monotonic())

    def elapsed(self) -> float:
        return self.spent_before + time.monotonic() - self.started


class Plan(Protocol):
    """When a run ends, and how far it is before step n."""

    def progress(self, steps_done: float) -> float: ...
    def finished(self, steps_done: int, seconds_per_step: float) -> bool: ...
    def seconds_left(self, steps_done: int, seconds_per_step: float) -> float: ...


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A number of steps. Progress is a pure function of the step, so a resumed run meets the same learning rates."""

    total: int

    def progress(self, steps_done: float) -> float:
        return steps_done / self.total

    def finished(self, steps_done: int, seconds_per_step: float) -> bool:
        return steps_done >= self.total

    def seconds_left(self, steps_done: int, seconds_per_step: float) -> float:
        return (self.total - steps_done) * seconds_per_step


@dataclass(slots=True)
class TimePlan:
    """A moment to end at. Progress is the share of the time that is gone: the schedule finishes at any speed."""

    clock: Clock
    begin: float
    deadline: float

    def progress(self, steps_done: float) -> float:
        return min(1.0, (self.clock.elapsed() - self.begin) / max(self.deadline - self.begin, 1e-9))

    def finished(self, steps_done: int, seconds_per_step: float) -> bool:
        return self.clock.elapsed() + seconds_per_step > self.deadline

    def seconds_left(self, steps_done: int, seconds_per_step: float) -> float:
        return max(0.0, self.deadline - self.clock.elapsed())


@dataclass(frozen=True, slots=True)
class Step:
    """One step, as the caller of the loop sees it."""

    number: int
    progress: float
    rate: float
    result: StepResult
    units_per_second: float
    seconds_left: float
    elapsed: float
    evaluation: dict[str, float] | None
    is_best: bool


def train(
    learner: Learner, plan: Plan, config: TrainingConfig, clock: Clock, *, steps_done: int, best: float
) -> Iterator[Step]:
    """Steps from `steps_done` on until the plan is finished. The best step has the lowest held-out perplexity."""
    evaluated = math.floor(plan.progress(steps_done) * config.evaluations)
    pace = Pace()
    is_last = plan.finished(steps_done, pace.seconds_per_step)
    while not is_last:
        # The rate at the middle of the step: at its start, the first step would have rate 0 and change nothing.
        rate = rate_at(plan.progress(steps_done + 0.5), config.warmup, config.decay)
        began = time.monotonic()
        result = learner.step(steps_done, rate)
        pace.add(result.units, time.monotonic() - began)
        steps_done += 1
        progress = plan.progress(steps_done)
        evaluation = None
        is_last = plan.finished(steps_done, pace.seconds_per_step)
        if is_last or math.floor(progress * config.evaluations) > evaluated:
            evaluated = math.floor(progress * config.evaluations)
            evaluation = learner.evaluate(config.evaluate_units) or None
        is_best = evaluation is not None and evaluation["perplexity"] < best
        if evaluation is not None and is_best:
            best = evaluation["perplexity"]
        left = plan.seconds_left(steps_done, pace.seconds_per_step)
        yield Step(
            steps_done, progress, rate, result, pace.units_per_second, left, clock.elapsed(), evaluation, is_best
        )


class Pace:
    """The speed of recent steps: an exponential mean over about twenty of them."""

    def __init__(self) -> None:
        self.units = self.seconds = self.steps = 0.0

    def add(self, units: int, seconds: float) -> None:
        keep = 0.95
        self.units = keep * self.units + units
        self.seconds = keep * self.seconds + seconds
        self.steps = keep * self.steps + 1

    @property
    def units_per_second(self) -> float:
        return self.units / self.seconds if self.seconds else 0.0

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / self.steps if self.steps else 0.0
