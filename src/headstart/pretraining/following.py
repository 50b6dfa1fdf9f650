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
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.errors import EndedElsewhereError, HeadstartError, LostProcessError
from headstart.pretraining.events import Joined
from headstart.pretraining.learner import Learner, StepResult
from headstart.pretraining.neural import DivergedError
from headstart.pretraining.sharded import ShardedLearner, all_see, sharded
from headstart.progress import Progress
from headstart.training.ranks import Ranks
from headstart.training.run import CheckpointNote, RunDirectory
from headstart.training.saved_tensors import SavedTensors
from headstart.training.shared_folder import marked
from headstart.training.tensors import check_state


class Order(IntEnum):
    """What the first process says; it travels as a number."""

    STEP = 0
    EVALUATE = 1
    LOAD_STATE = 2
    LOAD_WEIGHTS = 3
    END = 4
    FAIL = 5
    SHARD = 6
    """From now on the learner is divided; the orders that follow are for divided learners alone."""
    LOAD_SHARDS = 7
    SAVE_SHARDS = 8
    GATHER_WEIGHTS = 9
    SCATTER_WEIGHTS = 10


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

    def state(self) -> Mapping[str, Tensor]:
        return self.learner.state()

    def save(self, run: RunDirectory, note: CheckpointNote) -> None:
        """Write the state as a checkpoint of the run."""
        run.save(note, self.learner.state())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.learner.load_state(state)
        say(self.ranks, Order.LOAD_STATE)
        share_tensors(self.ranks, state)

    def restore(self, saved: SavedTensors) -> None:
        """Go on from a checkpoint."""
        self.load_state(saved)

    def weights(self) -> Mapping[str, Tensor]:
        return self.learner.weights()

    def weight_bytes(self) -> int:
        """What `weights` takes on disk."""
        return sum(tensor.nbytes for tensor in self.learner.weights().values())

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        self.learner.load_weights(weights)
        say(self.ranks, Order.LOAD_WEIGHTS)
        share_tensors(self.ranks, weights)


class ShardedLeader(Leader):
    """Leads learners that each hold a piece of every weight and moment. No process ever has the whole state."""

    def __init__(self, learner: Learner, ranks: Ranks, folder: Path) -> None:
        """folder: of the run, where all processes are to write."""
        with marked(folder) as mark:
            say(ranks, Order.SHARD)
            share_text(ranks, str(mark))
            all_see(mark, ranks)
        self.sharded = sharded(learner)
        super().__init__(self.sharded, ranks)

    def save(self, run: RunDirectory, note: CheckpointNote) -> None:
        run.save_shards(note, self._write)

    def _write(self, folder: Path) -> dict[str, str]:
        say(self.ranks, Order.SAVE_SHARDS)
        share_text(self.ranks, str(folder.resolve()))
        return self.sharded.save_shard(folder)

    def restore(self, saved: SavedTensors) -> None:
        say(self.ranks, Order.LOAD_SHARDS)
        share_text(self.ranks, json.dumps([str(file.resolve()) for file in saved.files]))
        self.sharded.load_shards(saved.files)

    def weights(self) -> Mapping[str, Tensor]:
        say(self.ranks, Order.GATHER_WEIGHTS)
        return self.sharded.gathered_weights()

    def weight_bytes(self) -> int:
        return self.sharded.weight_bytes()

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        check_state(self.sharded.weights(), weights)
        say(self.ranks, Order.SCATTER_WEIGHTS)
        self.sharded.scatter_weights(weights)


@contextmanager
def leading(learner: Learner, ranks: Ranks, sharded_in: Path | None = None) -> Iterator[Leader]:
    """A leader whose weights all processes have, and which ends them with itself.

    sharded_in: the folder of a run whose processes are to hold a piece of the weights each.
    """
    try:
        say(ranks, Order.LOAD_WEIGHTS)
        share_tensors(ranks, learner.weights())
        yield Leader(learner, ranks) if sharded_in is None else ShardedLeader(learner, ranks, sharded_in)
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
        elif order is Order.LOAD_WEIGHTS:
            learner.load_weights(shared_tensors(ranks))
        elif order is Order.SHARD:
            learner = sharded(learner) if all_see(Path(shared_text(ranks)), ranks) else learner
        elif isinstance(learner, ShardedLearner):
            obey_sharded(order, learner, ranks)
        yield Progress("training", int(first) if order is Order.STEP else 0, 0, "steps")


def obey_sharded(order: Order, learner: ShardedLearner[Any], ranks: Ranks) -> None:
    if order is Order.SAVE_SHARDS:
        learner.save_shard(Path(shared_text(ranks)))
    elif order is Order.LOAD_SHARDS:
        learner.load_shards([Path(file) for file in json.loads(shared_text(ranks))])
    elif order is Order.GATHER_WEIGHTS:
        learner.gathered_weights()
    else:
        learner.scatter_weights({})


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
    share_text(ranks, json.dumps(described))
    ranks.share_([tensor.detach().cpu().contiguous() for tensor in tensors.values()])


def shared_tensors(ranks: Ranks) -> dict[str, Tensor]:
    tensors = {
        name: torch.zeros(shape, dtype=getattr(torch, dtype.removeprefix("torch.")))
        for name, shape, dtype in json.loads(shared_text(ranks))
    }
    ranks.share_(list(tensors.values()))
    return tensors


def share_text(ranks: Ranks, text: str) -> None:
    data = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    ranks.share_([torch.tensor(len(data))])
    ranks.share_([data])


def shared_text(ranks: Ranks) -> str:
    length = torch.tensor(0)
    ranks.share_([length])
    data = torch.zeros(int(length), dtype=torch.uint8)
    ranks.share_([data])
    return bytes(data.tolist()).decode()
