from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from headstart.errors import DataError, EndedElsewhereError
from headstart.pretraining.events import Joined
from headstart.pretraining.following import follow, leading
from headstart.pretraining.learner import StepResult
from headstart.pretraining.neural import DivergedError


@dataclass
class Told:
    """A learner that writes down what it is asked for. Its state has a moment only after a step, as an optimiser's."""

    device = torch.device("cpu")
    unit = "tokens"
    keeps_best = True
    number: float = 0.0
    calls: list[Any] = field(default_factory=list)

    def step(self, number: int, rate: float) -> StepResult:
        self.calls.append((number, rate))
        self.number += rate
        if rate > 1:
            raise DivergedError("too high")
        return StepResult(1.0, 1)

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        self.calls.append(most_units)
        return {}

    def state(self) -> dict[str, torch.Tensor]:
        moment = {"moment": torch.tensor([1, 2])} if self.calls else {}
        return {"weight": torch.tensor([self.number]), **moment}

    def weights(self) -> dict[str, torch.Tensor]:
        return {"weight": torch.tensor([self.number])}

    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        self.calls.append({name: tensor.tolist() for name, tensor in state.items()})
        self.number = float(state["weight"])

    load_weights = load_state


def test_the_others_do_what_the_first_does_in_its_order(in_threads) -> None:
    def work(ranks) -> tuple[list[Any], float]:
        learner = Told(number=float(ranks.launch.rank))
        if ranks.launch.rank:
            events = list(follow(learner, ranks))
            assert isinstance(events[0], Joined)
            return learner.calls, learner.number
        with leading(learner, ranks) as leader:
            leader.evaluate(None)
            leader.step(0, 0.5)
            leader.evaluate(700)
            leader.load_state({"weight": torch.tensor([4.0]), "moment": torch.tensor([7, 8])})
            leader.step(2**40, 0.1)
            leader.load_weights({"weight": torch.tensor([3.0])})
        return learner.calls, learner.number

    first, *others = in_threads(3, work)
    assert first[1] == 3.0
    begun = [{"weight": [0.0]}]  # whatever a process began with, its weights are those of the first one
    assert [(calls, number) for calls, number in others] == [(begun + first[0], 3.0)] * 2


def test_an_error_of_the_first_ends_the_others_without_a_word_of_their_own(in_threads) -> None:
    def work(ranks) -> None:
        if ranks.launch.rank:
            with pytest.raises(EndedElsewhereError):
                list(follow(Told(), ranks))
            return
        with pytest.raises(DataError, match="too high"), leading(Told(), ranks) as leader:
            leader.step(0, 2.0)  # it diverges in all of them, and the first one says so

    in_threads(2, work)


def test_a_stop_between_two_steps_ends_the_others(in_threads) -> None:
    def steps(ranks):
        with leading(Told(), ranks) as leader:
            for number in range(9):
                yield leader.step(number, 0.1)

    def work(ranks) -> int:
        if ranks.launch.rank:
            learner = Told()
            list(follow(learner, ranks))
            return len(learner.calls) - 1
        session = steps(ranks)
        taken = [next(session) for _ in range(4)]
        session.close()
        return len(taken)

    assert in_threads(3, work) == [4, 4, 4]
