"""A neural network as a learner that is divided: each process holds, trains and saves a piece of every parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.atomic import sha256_of
from headstart.cores import torch_products
from headstart.errors import CheckpointError, ConfigError
from headstart.pretraining.learner import Learner, StepResult
from headstart.pretraining.neural import BYTES_PER_PARAMETER, LIBRARY_BYTES, NeuralLearner, named_tensors
from headstart.pretraining.objective import BatchT
from headstart.training.ranks import Ranks, agree, computing_together
from headstart.training.run import RESUME, shard_name
from headstart.training.saved_tensors import SavedTensors, write_parts
from headstart.training.sharding import (
    SavedPieces,
    ShardedAdamW,
    ShardedGradient,
    copy_piece,
    own_parts,
    release,
    shard,
    whole,
)
from headstart.training.shared_folder import is_seen

DIGEST_BYTES = 32


class ShardedLearner(NeuralLearner[BatchT]):
    """All processes call each method at the same time, because they exchange pieces in all of them."""

    def __init__(self, learner: NeuralLearner[BatchT]) -> None:
        """learner: whose model is divided. It must not be used any more."""
        model, launch = learner.model, learner.ranks.launch
        groups = model.prepare_sharding()
        own = {id(p) for group in groups for p in group.parameters()}
        self.together = sum(p.numel() for p in model.parameters() if id(p) not in own)
        """Numbers in the group that is whole during a step."""
        self.largest = max((sum(p.numel() for p in group.parameters()) for group in groups), default=0)
        """Numbers in the largest of the others."""
        shard(model, groups, learner.device, launch.world)
        super().__init__(
            model,
            learner.batches,
            learner.valid,
            learner.optimizer.config,
            accumulate=learner.accumulate,
            seed=learner.seed,
            precision="bfloat16" if learner.bfloat16 else "float32",
            device=learner.device,
            ranks=learner.ranks,
        )
        self.optimizer = ShardedAdamW(model, learner.optimizer.config)
        self.gradient = ShardedGradient(learner.ranks)
        vars(learner).clear()  # callers may still hold it, and with it the whole parameters

    def step(self, number: int, rate: float) -> StepResult:
        with computing_together(), torch_products():
            return super().step(number, rate)

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        with computing_together(), torch_products():
            found = super().evaluate(most_units)
        release(self.model)
        return found

    def _rows(self, batch: BatchT) -> tuple[BatchT, int]:
        """A process without a row of its own computes those of another one, for nothing: the others wait for it."""
        mine, weight = super()._rows(batch)
        world = self.ranks.launch.world
        if not len(mine.mask):
            return next(rows for rank in range(world) if len((rows := batch.share(rank, world)).mask)), 0
        return mine, weight

    def save_shard(self, folder: Path) -> dict[str, str]:
        """Write the own pieces into `folder`; the checksums of all processes' files, by name."""
        launch = self.ranks.launch
        path = folder / shard_name(launch.rank, launch.world)
        digests = torch.zeros(launch.world, DIGEST_BYTES, dtype=torch.float64)
        problem = None
        try:
            write_parts(path, own_parts(self.state(), is_first=launch.is_first), RESUME)
            digests[launch.rank] = torch.tensor(list(bytes.fromhex(sha256_of(path))))
        except (CheckpointError, OSError) as error:
            problem = self._told(error)
        if not agree(self.ranks, problem):
            return {}
        self.ranks.sum_([digests])
        return {shard_name(rank, launch.world): bytes(map(int, row)).hex() for rank, row in enumerate(digests.tolist())}

    def load_shards(self, files: Sequence[Path]) -> None:
        """Go on from a checkpoint that any number of processes wrote."""
        parameters = self.optimizer.parameters.items()
        cut = {f"model.{name}": tensor for name, tensor in named_tensors(self.model)}
        cut |= {f"optimizer.{name}.{moment}": p for name, p in parameters for moment in ("exp_avg", "exp_avg_sq")}
        problem = None
        try:
            self.load_state(SavedPieces(SavedTensors(files), cut))
        except CheckpointError as error:
            problem = self._told(error)
        agree(self.ranks, problem)

    def gathered_weights(self) -> dict[str, Tensor]:
        """The whole weights in the first process, nothing in the others. They travel one parameter at a time."""
        found = {}
        for name, tensor in named_tensors(self.model):
            with computing_together():
                gathered = whole(tensor)
            if self.ranks.launch.is_first:
                found[name] = gathered.cpu()
        return found

    def scatter_weights(self, weights: Mapping[str, Tensor]) -> None:
        """weights: whole ones, in the first process. They travel one parameter at a time."""
        for name, tensor in named_tensors(self.model):
            given = weights[name] if self.ranks.launch.is_first else torch.empty(tensor.shape, dtype=tensor.dtype)
            self.ranks.share_([given.contiguous()] if self.ranks.launch.is_first else [given])
            copy_piece(tensor, given)

    def memory_bytes(self) -> int:
        """As of a whole one, but divided, and the groups that are whole at a time with their gradients."""
        B, T = self.batches[0].mask.shape
        world = self.ranks.launch.world
        held = BYTES_PER_PARAMETER * self.parameter_count() // world + 4 * 2 * (self.together + 2 * self.largest)
        return LIBRARY_BYTES + held + 4 * self.model.activation_floats(-(-B // world), T)

    def weight_bytes(self) -> int:
        return 4 * self.parameter_count()

    def _told(self, error: Exception) -> str:
        launch = self.ranks.launch
        return str(error) if launch.is_first else f"Process {launch.rank}, on machine {launch.machine}: {error}"


def sharded(learner: Learner) -> ShardedLearner[Any]:
    if not isinstance(learner, NeuralLearner):
        raise ConfigError("Only a neural network can be divided among processes. Leave --shard out.")
    return ShardedLearner(learner)


def all_see(mark: Path, ranks: Ranks) -> bool:
    """Whether all processes see this file of the run's folder; raises CheckpointError in the first one if not."""
    problem = None
    if not is_seen(mark):
        problem = (
            f"{mark.parent}: machine {ranks.launch.machine} does not see this folder, but with --shard every process "
            "writes its part of the checkpoints. Give an --out on a file system that all machines share, or leave "
            "--shard out."
        )
    return agree(ranks, problem)
