"""A neural network as a learner: batches, gradients, AdamW; each step a pure function of the state and its number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Generic, Literal

import torch
from torch import Tensor, nn

from headstart import metrics
from headstart.batches.order import seed_of
from headstart.errors import DataError, Remedy
from headstart.heads.language_model import LossTerm
from headstart.pretraining.learner import StepResult
from headstart.pretraining.loop import TrainingConfig
from headstart.pretraining.objective import Batch, Batches, BatchT, Objective
from headstart.training.optim import AdamW, OptimizerConfig
from headstart.training.ranks import Alone, Ranks
from headstart.training.seeding import seeded
from headstart.training.step_gradient import ReplicatedGradient, StepGradient
from headstart.training.tensors import copy_state

LIBRARY_BYTES = 400_000_000
"""Python and torch before anything is computed."""
BYTES_PER_PARAMETER = 4 * 4
"""A weight, its gradient and AdamW's two moments, in float32."""
SMALL_SIZES = ("tiny", "mini")
SMALL_BATCH = 1024
MODEST_RATE = 1e-3
"""A learning rate that no size diverges with."""
Precision = Literal["auto", "float32", "bfloat16"]


class DivergedError(DataError):
    """The loss is not finite; it is the same in every process."""


class NeuralLearner(Generic[BatchT]):
    """Trains a model whose forward gives named, summed losses."""

    unit = "tokens"
    keeps_best = True

    def __init__(
        self,
        model: Objective[BatchT],
        batches: Batches[BatchT],
        valid: Batches[BatchT] | None,
        optimizer: OptimizerConfig,
        *,
        accumulate: int,
        seed: int,
        precision: Precision = "auto",
        device: torch.device | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        """ranks: the processes that divide each batch among them; left out, this one alone."""
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.batches, self.valid = batches, valid
        self.optimizer = AdamW(model, optimizer)
        self.ranks = ranks or Alone()
        self.gradient: StepGradient = ReplicatedGradient(
            list(self.optimizer.parameters.values()), self.ranks, self.device
        )
        self.accumulate, self.seed = accumulate, seed
        self.bfloat16 = precision == "bfloat16" or (precision == "auto" and has_fast_bfloat16(self.device))

    @classmethod
    def configured(
        cls,
        model: Objective[BatchT],
        batches: Batches[BatchT],
        valid: Batches[BatchT] | None,
        optimizer: OptimizerConfig,
        training: TrainingConfig,
        seed: int,
        ranks: Ranks,
    ) -> NeuralLearner[BatchT]:
        return cls(
            model,
            batches,
            valid,
            optimizer,
            accumulate=training.accumulate,
            seed=seed,
            precision=training.precision,
            ranks=ranks,
        )

    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    def steps_per_epoch(self) -> int:
        return -(-len(self.batches) // self.accumulate)

    def step(self, number: int, rate: float) -> StepResult:
        self.model.train()
        micro_batches = [self.batches[number * self.accumulate + i] for i in range(self.accumulate)]
        totals = sum_counts(micro_batches)
        units = sum(int(batch.mask.sum()) for batch in micro_batches)
        mine = self._gradients(number, micro_batches, totals)
        # A loss that no process has computed is none of this model's, such as the backward one of a forward ELMo.
        numbers = self.gradient.sum_up([number for name in totals for number in (mine.get(name, 0.0), name in mine)])
        sums = {name: total for name, total, found in zip(totals, numbers[::2], numbers[1::2], strict=True) if found}
        means = {name: total / totals[name] for name, total in sums.items()}
        loss = math.fsum(means.values())
        if not math.isfinite(loss):
            lower = min(self.optimizer.config.learning_rate / 3, MODEST_RATE)
            raise DivergedError(
                f"The loss is {loss} at step {number + 1}; the learning rate is too high for this model and text.",
                Remedy("Start again with a lower one, such as {}.", f"optimizer.learning_rate={lower:.1e}"),
            )
        norm = self.optimizer.step(rate)
        return StepResult(loss, units, {**means, "gradient_norm": norm})

    def _gradients(self, number: int, micro_batches: Sequence[BatchT], totals: dict[str, int]) -> dict[str, float]:
        """The gradient of this process's rows, and their summed losses by name."""
        sums: dict[str, float] = {}
        launch = self.ranks.launch
        with seeded(seed_of(self.seed, "step", number, *([launch.rank] if launch.rank else [])), self.device):
            generator = torch.Generator().manual_seed(seed_of(self.seed, "samples", number))
            for batch in micro_batches:
                mine, weight = self._rows(batch)
                if not len(mine.mask):
                    self.model.skip(generator)
                    continue
                parts = mine.to(self.device).parts(self.gradient.parts)
                found: list[dict[str, float]] = [{} for _ in parts]
                self.gradient.of(
                    [partial(self._loss, *each, totals, weight, generator) for each in zip(parts, found, strict=True)],
                    is_last=batch is micro_batches[-1],
                )
                for losses in found:
                    for name, total in losses.items():
                        sums[name] = sums.get(name, 0.0) + total
        return sums

    def _loss(
        self, batch: BatchT, sums: dict[str, float], totals: dict[str, int], weight: int, generator: torch.Generator
    ) -> Tensor:
        """The loss of a part, each sum divided by its count over all micro-batches: the gradient is one big batch's."""
        with self._precision():
            terms: dict[str, LossTerm] = self.model(batch, generator)
        sums.update({name: weight * float(term.total.detach()) for name, term in terms.items()})
        return weight * torch.stack([term.total / totals[name] for name, term in terms.items()]).sum()

    def evaluate(self, most_units: int | None) -> dict[str, float]:
        """Perplexity and accuracy of each loss on the held-out text, with the same batches and masks every time."""
        if self.valid is None:
            return {}
        self.model.eval()
        sums: dict[str, list[float]] = {}
        units = 0
        with torch.no_grad(), self._precision():
            for batch in first_units(self.valid, most_units):
                units += int(batch.mask.sum())
                sums |= {name: [0.0, 0, 0] for name in batch.counts() if name not in sums}
                mine, weight = self._rows(batch)
                if not len(mine.mask):
                    continue
                for name, term in self.model(mine.to(self.device), None).items():
                    here = (float(term.total), term.count, term.correct or 0)
                    sums[name] = [before + weight * n for before, n in zip(sums[name], here, strict=True)]
        table = torch.tensor(list(sums.values()), dtype=torch.float64)
        self.ranks.sum_([table])
        summed = dict(zip(sums, table.tolist(), strict=True))
        return {**scores({name: found for name, found in summed.items() if found[1]}), "units": units}

    def _rows(self, batch: BatchT) -> tuple[BatchT, int]:
        """The rows that this process computes, and their weight in the sums over all processes."""
        return batch.share(self.ranks.launch.rank, self.ranks.launch.world), 1

    def state(self) -> dict[str, Tensor]:
        optimizer = {f"optimizer.{name}": value for name, value in self.optimizer.state().items()}
        return {**{f"model.{name}": value for name, value in self.weights().items()}, **optimizer}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.load_weights(StripPrefix(state, "model."))
        self.optimizer.load_state(StripPrefix(state, "optimizer."))

    def weights(self) -> dict[str, Tensor]:
        """Every parameter and buffer once (tied ones under their first name)."""
        return {name: value.detach() for name, value in named_tensors(self.model)}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        copy_state(dict(named_tensors(self.model)), weights)

    def memory_bytes(self) -> int:
        """The libraries, then weights, gradients, two moments, and what one batch leaves for its backward pass."""
        B, T = self.batches[0].mask.shape
        return LIBRARY_BYTES + BYTES_PER_PARAMETER * self.parameter_count() + 4 * self.model.activation_floats(B, T)

    def state_bytes(self) -> int:
        return 3 * 4 * self.parameter_count()

    def _precision(self) -> AbstractContextManager[object]:
        return torch.autocast(self.device.type, torch.bfloat16) if self.bfloat16 else nullcontext()


def named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in model.state_dict())


class StripPrefix(Mapping[str, Tensor]):
    """The tensors whose names begin with `prefix`, under the rest of their names; each is read when it is asked for."""

    def __init__(self, state: Mapping[str, Tensor], prefix: str) -> None:
        self.state, self.prefix = state, prefix

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self.prefix) for name in self.state if name.startswith(self.prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Tensor:
        return self.state[self.prefix + name]


def sum_counts(batches: Sequence[Batch]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for batch in batches:
        for name, count in batch.counts().items():
            totals[name] = totals.get(name, 0) + count
    return totals


def first_units(batches: Batches[BatchT], most_units: int | None) -> Iterator[BatchT]:
    """The first epoch's batches, until `most_units` were seen."""
    seen = 0
    for number in range(len(batches)):
        if most_units is not None and seen >= most_units:
            return
        batch = batches[number]
        seen += int(batch.mask.sum())
        yield batch


def scores(sums: Mapping[str, list[float]]) -> dict[str, float]:
    """`perplexity` is the mean over the word losses; a yes-no loss ("next") gives its accuracy alone."""
    words = {name: metrics.perplexity(total, int(count)) for name, (total, count, _) in sums.items() if name != "next"}
    found = {"perplexity": metrics.mean(list(words.values()))}
    if len(words) > 1:
        found |= {f"{name}_perplexity": value for name, value in words.items()}
    return found | {f"{name}_accuracy": correct / count for name, (_, count, correct) in sums.items()}


def batch_tokens(size: str, large: int) -> int:
    """Tokens in a batch: in the time a CPU has, small networks learn more from many small steps."""
    return SMALL_BATCH if size in SMALL_SIZES else large


def has_fast_bfloat16(device: torch.device) -> bool:
    """bfloat16 pays only where the hardware multiplies it; elsewhere it is emulated and slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
