"""Data parallelism: who computes which rows, and the gradients that the cores of one machine have of their parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from headstart.cores import on_cores
from headstart.encoders.kernels.dropout import drawing_from, drawn_seed

Loss = Callable[[], Tensor]
"""A part's share of the loss, ()."""
GradientsT = TypeVar("GradientsT")
Receiver = Callable[[nn.Parameter, Sequence[Tensor]], None]
"""Takes the gradients that the parts have for a parameter, in order, in place of the parameter's grad."""


class DataParallelGradient:
    """Adds the gradients of all parts to every parameter's grad, in order: the same parts give the same bits."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self.tables: dict[int, Tensor] = {}
        """Dense arrays for sparse gradients (of embeddings), by parameter: allocated once and reused at every step."""

    def of(self, losses: Sequence[Loss], receive: Receiver | None = None) -> float:
        """Backward through all parts; the whole loss. Each part's dropout has its own seed, drawn here in order.

        receive: is given each parameter's gradients as soon as all parts have theirs, while other parameters still wait
        for theirs, by whichever thread is the last.
        """
        wanted = [p for p in self.parameters if p.requires_grad]
        works = [partial(gradients, loss, wanted, drawn_seed()) for loss in losses]
        if receive is not None:
            with Arrivals(wanted, len(works), receive).watched() as arrivals:
                found = on_cores([partial(arrivals.of_part, number, work) for number, work in enumerate(works)])
            arrivals.hand_on_the_rest()
            return float(sum(value for value, _ in found))
        found = on_cores(works)
        for place, parameter in enumerate(wanted):
            self._add(parameter, [mine for _, shares in found if (mine := shares[place]) is not None])
        return float(sum(value for value, _ in found))

    def _add(self, parameter: nn.Parameter, shares: list[Tensor]) -> None:
        """Add to the gradient that is there already, if any (gradients are accumulated over several batches)."""
        if parameter.grad is None and any(share.is_sparse for share in shares):
            table = self.tables.get(id(parameter))
            parameter.grad = torch.zeros_like(parameter) if table is None else table.zero_()
            self.tables[id(parameter)] = parameter.grad
        for share in shares:
            if parameter.grad is None:
                parameter.grad = share
            else:
                parameter.grad += share


class _ThisThread(threading.local):
    part = 0


_this_thread = _ThisThread()


class Arrivals:
    """The parts' gradients of each parameter, collected in the middle of their backward passes."""

    def __init__(self, parameters: Sequence[nn.Parameter], parts: int, receive: Receiver) -> None:
        self.parameters, self.parts, self.receive = parameters, parts, receive
        self.shares: list[dict[int, Tensor]] = [{} for _ in parameters]
        self.lock = threading.Lock()

    @contextmanager
    def watched(self) -> Iterator[Arrivals]:
        hooks = [
            p.register_hook(partial(self._arrived, place))  # type: ignore[no-untyped-call]
            for place, p in enumerate(self.parameters)
        ]
        try:
            yield self
        finally:
            for hook in hooks:
                hook.remove()

    def of_part(self, number: int, work: Callable[[], GradientsT]) -> GradientsT:
        """On a CPU the backward pass calls its hooks on the thread that began it; elsewhere there is one part."""
        _this_thread.part = number
        try:
            return work()
        finally:
            _this_thread.part = 0

    def _arrived(self, place: int, gradient: Tensor) -> None:
        with self.lock:
            self.shares[place][_this_thread.part] = gradient
            whole = len(self.shares[place]) == self.parts
        if whole:
            self._hand_on(place)

    def hand_on_the_rest(self) -> None:
        """Parameters that not every part reads."""
        for place, shares in enumerate(self.shares):
            if shares:
                self._hand_on(place)

    def _hand_on(self, place: int) -> None:
        shares, self.shares[place] = self.shares[place], {}
        self.receive(self.parameters[place], [shares[part] for part in sorted(shares)])


def gradients(loss: Loss, parameters: list[nn.Parameter], seed: int) -> tuple[float, tuple[Tensor | None, ...]]:
    with drawing_from(seed):
        value = loss()
        return float(value.detach()), torch.autograd.grad(value, parameters, allow_unused=True)


def parts_of(rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Divide rows into as many parts as torch has threads, about equal in units; the longest rows come first."""
    order = sorted(rows, key=lambda row: (-lengths[row], row))
    cores = min(torch.get_num_threads(), len(order))
    total = sum(lengths[row] for row in order)
    parts: list[list[int]] = [[] for _ in range(cores)]
    seen = 0
    for row in order:
        parts[min(cores - 1, seen * cores // max(1, total))].append(row)
        seen += lengths[row]
    return [part for part in parts if part]


def shares_of(examples: Sequence[int], lengths: Sequence[int], world: int) -> list[list[int]]:
    """Divide examples among so many processes, about equal in units: the longest first, each to whoever has least.

    lengths: of each of them. The first process has the longest example.
    """
    if world == 1:
        return [list(examples)]
    shares: list[list[int]] = [[] for _ in range(world)]
    loads = [0] * world
    for place in sorted(range(len(examples)), key=lambda place: (-lengths[place], place)):
        rank = loads.index(min(loads))
        shares[rank].append(place)
        loads[rank] += lengths[place]
    return [[examples[place] for place in sorted(share)] for share in shares]
