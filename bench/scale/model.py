"""A model of the time of a training step on several machines: compute, update, and the way of the gradients."""

from __future__ import annotations

from dataclasses import dataclass

from bench.operations import TRAINING, bert, softmax
from headstart.encoders.bert import BertConfig

GRADIENT_BYTES = 4
"""Of each parameter: float32."""
STATE_BYTES = 16
"""Of each parameter in memory: weight, gradient and AdamW's two moments, in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What was measured of one machine. flops: of the matrix products of a step, forward and backward, in a second."""

    flops: float
    updates: float
    """Parameters that the optimiser updates in a second."""
    share_of_link: float
    """Of the rate of a cable, what gradients get of it."""
    hidden: float
    """Share of the backward pass, itself two thirds of the compute, during which gradients already travel."""
    exchange_seconds: float = 2e-4
    """For the smallest exchange with another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A model to train. flops: of one token, forward and backward."""

    parameters: int
    flops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds. waiting: for gradients, beyond the backward pass that hides some of it."""

    compute: float
    update: float
    travelling: float
    waiting: float

    @property
    def total(self) -> float:
        return self.compute + self.update + self.waiting


BACKWARD = 2 / 3


def step_time(
    network: Network,
    machine: Machine,
    *,
    tokens: float,
    machines: int,
    megabits: float,
    shard: bool = False,
    local_steps: int = 1,
) -> StepTime:
    """tokens: in the whole batch. A ring sends every gradient twice, but for the share a machine keeps.

    shard: weights travel for the forward and again for the backward pass, gradients once: half as much again.
    local_steps: after so many steps, weights are averaged in place of the gradients of each; a mean step is given.
    """
    compute = tokens * network.flops / machine.flops / machines
    update = network.parameters / machine.updates / (machines if shard else 1)
    if machines == 1:
        return StepTime(compute=compute, update=update, travelling=0.0, waiting=0.0)
    rounds = 3 if shard else 2
    sent = rounds * (machines - 1) / machines * GRADIENT_BYTES * network.parameters
    travelling = sent / (machine.share_of_link * megabits * 1e6 / 8) + 2 * (machines - 1) * machine.exchange_seconds
    if local_steps > 1:  # weights are whole only after the update: nothing hides their way
        return StepTime(
            compute=compute, update=update, travelling=travelling / local_steps, waiting=travelling / local_steps
        )
    # The last bucket is full only when the backward pass is over.
    waiting = max(travelling - machine.hidden * BACKWARD * compute, 0.0)
    return StepTime(compute=compute, update=update, travelling=travelling, waiting=waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was measured of preparing a text. Both rates are of one core, in bytes a second."""

    read: float
    """Blocks of text, without looking at their words."""
    prepared: float
    """Counted, learned from and tokenised, all in all."""


def preparing_seconds(text_bytes: float, reading: Reading, *, cores: int) -> float:
    """Until the shards are there. cores: of all machines. Each machine reads all of the text twice, whatever its share
    of the work: to choose a sample for the pieces, and to tokenise."""
    return max(2 * text_bytes / reading.read, text_bytes / reading.prepared / cores)


def bert_network(config: BertConfig, pieces: int, *, length: int, masked: float) -> Network:
    """masked: share of the pieces whose word is predicted."""
    D = config.width
    block = 4 * D * D + 2 * D * config.inner + 9 * D + config.inner
    tables = (pieces + config.positions + config.segments + 2) * D
    head = 2 * D * D + 4 * D + pieces  # with the pooler
    flops = TRAINING * (bert(config, [length]) + masked * (softmax(D, pieces) + 2 * D * D))
    return Network(parameters=config.layers * block + tables + head, flops=flops)
