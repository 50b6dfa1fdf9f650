"""Several processes that train one run: the first one decides and keeps the run, the others take each step with it.

The session of the first process talks to a `Leader` as to any learner. Before the leader takes a step, measures or
loads weights it says so to the other processes, whose learners then do the same. No other process looks at a clock, at
the run directory or at a setting of its own, so that they cannot disagree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum

import torch
from torch import Tensor

from headstart.errors import EndedElsewhereError, HeadstartError, LostProcessError
from headstart.pretraining.events import Joined
from headstart.pretraining.learner import Learner, StepResult
from headstart.pretraining.neural import DivergedError
from headstart.progress import Progress
from headstart.training.ranks import Ranks


class Order(IntEnum):
    """What the first process says; it travels as a number."""

    STEP = 0
    EVALUATE = 1
    LOAD_STATE = 2
    LOAD_WEIGHTS = 3
    END = 4
    FAIL = 5


class Leader:
    """The learner of the first process: what changes weights, or sums over all processes, happens in all of them."""

    def __init__(self, learner: Learner, ranks: Ranks) -> None:
        self.learner, self.ranks = learner, ranks
        self.device, self.unit, self.keeps_best = learner.device, learner.unit, learner.keeps_best

    def parameter_count(self) -> int:
        return self.learner.parameter_count()

    def memory_bytes(self) -> int:
        return self.learner.memory_bytes()

    def state_bytes(self) -> int:
        return self.learner.state_bytes()

    def steps_per_epoch(self) -> int:
        return self.learner.steps_per_epoch()

    def step(self, number: int, rate: float) -> StepResult:
        say(self.ranks, Order.STEP, number, rate)
        return self.learner.step(number, rate)

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        say(self.ranks, Order.EVALUATE, math.inf if most_units is None else most_units)
        return self.learner.evaluate(most_units)

    def state(self) -> dict[str, Tensor]:
        return self.learner.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.learner.load_state(state)
        say(self.ranks, Order.LOAD_STATE)
        share_tensors(self.ranks, state)

    def weights(self) -> dict[str, Tensor]:
        return self.learner.weights()

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        self.learner.load_weights(weights)
        say(self.ranks, Order.LOAD_WEIGHTS)
        share_tensors(self.ranks, weights)


@contextmanager
def leading(learner: Learner, ranks: Ranks) -> Iterator[Leader]:
    """A leader whose weights all processes have, and which ends them with itself."""
    try:
        say(ranks, Order.LOAD_WEIGHTS)
        share_tensors(ranks, learner.weights())
        yield Leader(learner, ranks)
    except LostProcessError:
        raise
    except HeadstartError:
        say(ranks, Order.FAIL)
        raise
    except GeneratorExit:  # a stop that was asked for
        say(ranks, Order.END)
        raise
    say(ranks, Order.END)


def follow(learner: Learner, ranks: Ranks) -> Generator[Joined | Progress, None, None]:
    """Do what the first process says until it ends."""
    yield Joined(ranks.launch.rank, ranks.launch.world)
    while True:
        order, first, second = heard(ranks)
        if order is Order.END:
            return
        if order is Order.FAIL:
            raise EndedElsewhereError("The first process has ended, and has said why.")
        if order is Order.STEP:
            with suppress(DivergedError):  # the first process has the same loss, and will say so
                learner.step(int(first), second)
        elif order is Order.EVALUATE:
            learner.evaluate(None if math.isinf(first) else int(first))
        elif order is Order.LOAD_STATE:
            learner.load_state(shared_tensors(ranks))
        else:
            learner.load_weights(shared_tensors(ranks))
        yield Progress("training", int(first) if order is Order.STEP else 0, 0, "steps")


def say(ranks: Ranks, order: Order, first: float = 0.0, second: float = 0.0) -> None:
    ranks.share_([torch.tensor([order, first, second], dtype=torch.float64)])


def heard(ranks: Ranks) -> tuple[Order, float, float]:
    message = torch.zeros(3, dtype=torch.float64)
    ranks.share_([message])
    order, first, second = message.tolist()
    return Order(int(order)), first, second


def share_tensors(ranks: Ranks, tensors: Mapping[str, Tensor]) -> None:
    """Names and shapes first: a process that has not taken a step has no moments of the optimiser yet."""
    described = [[name, list(tensor.shape), str(tensor.dtype)] for name, tensor in tensors.items()]
    text = torch.frombuffer(bytearray(json.dumps(described).encode()), dtype=torch.uint8)
    ranks.share_([torch.tensor(len(text))])
    ranks.share_([text])
    ranks.share_([tensor.detach().cpu().contiguous() for tensor in tensors.values()])


def shared_tensors(ranks: Ranks) -> dict[str, Tensor]:
    length = torch.tensor(0)
    ranks.share_([length])
    text = torch.zeros(int(length), dtype=torch.uint8)
    ranks.share_([text])
    tensors = {
        name: torch.zeros(shape, dtype=getattr(torch, dtype.removeprefix("torch.")))
        for name, shape, dtype in json.loads(bytes(text.tolist()))
    }
    ranks.share_(list(tensors.values()))
    return tensors
