from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from headstart.config import resolve
from headstart.errors import ConfigError
from headstart.pretraining.learner import StepResult
from headstart.pretraining.loop import Clock, Step, StepPlan, TimePlan, TrainingConfig, train


@dataclass
class FakeLearner:
    """Falls to a perplexity of 5 at step 6 and rises again."""

    seconds: float = 0.0
    rates: list[float] = field(default_factory=list)
    evaluated: list[int | None] = field(default_factory=list)

    def step(self, number: int, rate: float) -> StepResult:
        time.sleep(self.seconds)
        self.rates.append(rate)
        return StepResult(float(number), 10)

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        self.evaluated.append(most_units)
        return {"perplexity": 5.0 + abs(6 - len(self.rates))}


def run(learner: FakeLearner, plan, *, steps_done: int = 0, best: float = float("inf"), **config) -> list[Step]:
    settings = TrainingConfig(**{"warmup": 0.2, "evaluations": 5, **config})
    return list(train(learner, plan, settings, Clock.start(), steps_done=steps_done, best=best))


def test_steps_rates_and_evaluations_by_hand() -> None:
    learner = FakeLearner()
    steps = run(learner, StepPlan(10))
    assert [step.number for step in steps] == list(range(1, 11))
    assert learner.rates == pytest.approx([0.25, 0.75, 0.9375, 0.8125, 0.6875, 0.5625, 0.4375, 0.3125, 0.1875, 0.0625])
    assert [step.number for step in steps if step.evaluation] == [2, 4, 6, 8, 10]
    assert [step.number for step in steps if step.is_best] == [2, 4, 6]


def test_a_run_in_two_parts_meets_the_same_rates_and_evaluations() -> None:
    whole, second = FakeLearner(), FakeLearner()
    one = run(whole, StepPlan(10))
    two = run(second, StepPlan(10), steps_done=5)
    assert whole.rates[5:] == second.rates
    assert [bool(step.evaluation) for step in one[5:]] == [bool(step.evaluation) for step in two]


def test_a_budget_ends_on_time_with_the_schedule_finished() -> None:
    clock = Clock.start()
    learner = FakeLearner(seconds=0.01)
    settings = TrainingConfig(warmup=0.1, evaluations=3)
    plan = TimePlan(clock, begin=clock.elapsed(), deadline=0.5)
    steps = list(train(learner, plan, settings, clock, steps_done=0, best=float("inf")))
    assert clock.elapsed() <= 0.5 + 0.1
    assert learner.rates[-1] < 0.2
    assert steps[-1].evaluation is not None


def test_time_spent_before_counts() -> None:
    clock = Clock.start(spent_before=100.0)
    plan = TimePlan(clock, begin=0.0, deadline=200.0)
    assert plan.progress(0) == pytest.approx(0.5, abs=0.01)
    assert TimePlan(clock, begin=0.0, deadline=99.0).finished(0, 0.0)


def test_lengths_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other; got steps and budget"):
        resolve(TrainingConfig, {"steps": 5, "budget": "10m"})
    with pytest.raises(ConfigError, match=r"'steps' in .* greater than or equal to 1; got 0"):
        resolve(TrainingConfig, {"steps": 0})
    assert resolve(TrainingConfig, {"budget": "10m"}).budget == 600.0
