"""Data parallelism on one machine: each core computes the gradient of its part of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from headstart.cores import on_cores
from headstart.encoders.kernels.dropout import drawing_from, drawn_seed

Loss = Callable[[], Tensor]
"""A part's share of the loss, ()."""


class DataParallelGradient:
    """Adds the gradients of all parts to every parameter's grad, in order: the same parts give the same bits."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self.tables: dict[int, Tensor] = {}
        """Dense arrays for sparse gradients (of embeddings), by parameter: allocated once and reused at every step."""

    def of(self, losses: Sequence[Loss]) -> float:
        """Backward through all parts; the whole loss. Each part's dropout has its own seed, drawn here in order."""
        wanted = [p for p in self.parameters if p.requires_grad]
        found = on_cores([partial(gradients, loss, wanted, drawn_seed()) for loss in losses])
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
