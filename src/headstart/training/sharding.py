"""Fully sharded training (Zhao et al. 2023), by torch's FSDP2: weights, gradients and moments divided among processes.

Each parameter is cut along one dimension, and every process keeps one piece of it, with its gradient and its moments.
A group of parameters is brought together just before it is used, and its gradient is summed and cut as soon as the
backward pass has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Shard

from headstart.encoders.kernels.dropout import drawing_from, drawn_seed
from headstart.training.data_parallel import Loss
from headstart.training.optim import AdamW
from headstart.training.ranks import Ranks
from headstart.training.saved_tensors import Part, SavedTensors

FEW_ROWS = 16
"""A dimension of fewer rows than this for each process may be divided very unevenly."""


def shard(model: nn.Module, groups: Iterable[nn.Module], device: torch.device, world: int) -> None:
    """Divide the parameters, in place. groups: submodules that are brought together one at a time.

    All other parameters are one group, which is whole during a step: those that several modules read, such as an
    embedding that is tied to the softmax, belong there.
    """
    mesh = init_device_mesh(device.type, (world,))
    for module in [*groups, model]:
        divided = fully_shard(module, mesh=mesh, shard_placement_fn=partial(placement, world=world))
        # Losses are divided by the counts of all processes, so their gradients are to be summed; torch's default is the
        # mean, which gloo cannot compute.
        divided.set_force_sum_reduction_for_comms(True)
        divided.set_gradient_divide_factor(1.0)


def placement(parameter: nn.Parameter, world: int) -> Shard:
    """The first dimension, unless it is too short (ELMo's LSTMs begin with their two directions) and another fits."""
    rows = parameter.shape[0]
    others = [dim for dim in range(1, parameter.ndim) if not parameter.shape[dim] % world]
    if not rows % world or rows >= FEW_ROWS * world or not others:
        return Shard(0)
    return Shard(max(others, key=lambda dim: parameter.shape[dim]))


def release(model: nn.Module) -> None:
    """Keep only the own pieces: a forward pass without a backward pass leaves the last group whole."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


class ShardedGradient:
    """The gradient of a sharded model. The threads of a process share one pass, because its groups come one by one.

    All processes must reach the same parameters at every step, also those that have no row of the batch.
    """

    parts = 1

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks

    def of(self, losses: Sequence[Loss], *, is_last: bool) -> float:
        """FSDP adds to the grads, already summed over the processes and cut: so nothing is left to `sum_up`."""
        found = 0.0
        for loss in losses:
            with drawing_from(drawn_seed()):
                value = loss()
                value.backward()  # type: ignore[no-untyped-call]
            found += float(value.detach())
        return found

    def sum_up(self, numbers: Sequence[float]) -> list[float]:
        told = torch.tensor(numbers, dtype=torch.float64)
        self.ranks.sum_([told])
        found: list[float] = told.tolist()
        return found


class ShardedAdamW(AdamW):
    """AdamW over the own pieces; only the norm of the gradient needs all processes."""

    def _clip(self) -> float:
        limit = self.config.clip if self.config.clip is not None else float("inf")
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), limit, foreach=True)
        return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)


def place_of(tensor: DTensor) -> tuple[int, ...]:
    """The indices of the own piece's first element: along the dimension that is cut, all but the last are equal."""
    start = [0] * tensor.ndim
    (cut,) = tensor.placements
    if isinstance(cut, Shard):
        n, world = tensor.shape[cut.dim], tensor.device_mesh.size()
        start[cut.dim] = min(n, tensor.device_mesh.get_local_rank() * -(-n // world))
    return tuple(start)


def own_piece(tensor: DTensor) -> Tensor:
    """In the same memory."""
    with torch.no_grad():
        piece: Tensor = tensor.to_local()
    return piece


def own_parts(tensors: Mapping[str, Tensor], *, is_first: bool) -> dict[str, Part]:
    """What this process is to save: its pieces and, in the first process, what is not divided."""
    parts = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, DTensor):
            parts[name] = Part(place_of(tensor), own_piece(tensor))
        elif is_first:
            parts[name] = Part((0,) * tensor.ndim, tensor)
    return parts


class SavedPieces(Mapping[str, Tensor]):
    """Saved tensors, cut as those of a sharded model: of each only the own piece is read."""

    def __init__(self, saved: SavedTensors, model: Mapping[str, Tensor]) -> None:
        """model: by the name of a saved tensor, the one that it is to be cut like where it has the same shape."""
        self.saved, self.model = saved, model

    def __iter__(self) -> Iterator[str]:
        return iter(self.saved)

    def __len__(self) -> int:
        return len(self.saved)

    def __getitem__(self, name: str) -> Tensor:
        like = self.model.get(name)
        if not isinstance(like, DTensor) or self.saved.shape(name) != tuple(like.shape):
            return self.saved[name]
        local = self.saved.part(name, place_of(like), own_piece(like).shape).to(like.device)
        return DTensor.from_local(
            local, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
        )


def copy_piece(target: Tensor, whole: Tensor) -> None:
    """Into the own piece of `target`, from the whole tensor."""
    with torch.no_grad():
        if not isinstance(target, DTensor):
            target.copy_(whole)
            return
        local = own_piece(target)
        for dim, (first, n) in enumerate(zip(place_of(target), local.shape, strict=True)):
            whole = whole.narrow(dim, first, n)
        local.copy_(whole)


def whole(tensor: Tensor) -> Tensor:
    """All pieces of it, in every process."""
    if not isinstance(tensor, DTensor):
        return tensor.detach()
    with torch.no_grad():
        found: Tensor = tensor.full_tensor()
    return found
