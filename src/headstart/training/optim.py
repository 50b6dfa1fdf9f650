"""AdamW for any model: which parameters decay, and its state by parameter name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from pydantic import Field
from torch import Tensor, nn

from headstart.config import Section
from headstart.errors import CheckpointError

MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class OptimizerConfig(Section):
    """Adam with bias correction and decoupled decay."""

    learning_rate: float = Field(default=1e-3, gt=0)
    """The peak, reached at the end of the warm-up."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay, per unit of learning rate; never on biases and norms."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the running mean of the gradient."""
    beta2: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the running mean of the squared gradient."""
    epsilon: float = Field(default=1e-6, gt=0)
    """Added to the denominator."""
    clip: float | None = Field(default=1.0, gt=0)
    """Largest norm of the whole gradient."""


class AdamW:
    """torch's fused AdamW, whose state is saved and restored under the parameters' names."""

    def __init__(
        self, model: nn.Module, config: OptimizerConfig, scale_of: Callable[[str], float] = lambda name: 1.0
    ) -> None:
        """scale_of: the share of the learning rate that a parameter gets, by its name."""
        self.config = config
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
        for name, p in self.parameters.items():
            groups.setdefault((scale_of(name), p.ndim >= 2), []).append(p)
        self.optimizer = torch.optim.AdamW(
            [
                {"params": group, "scale": scale, "weight_decay": config.weight_decay if decays else 0.0}
                for (scale, decays), group in groups.items()
            ],
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.epsilon,
            fused=True,
        )

    def step(self, rate: float) -> float:
        """Clip, update at `rate` of the peak learning rate, free the gradients. Returns the norm before clipping."""
        norm = self._clip()
        for group in self.optimizer.param_groups:
            group["lr"] = rate * self.config.learning_rate * group["scale"]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def _clip(self) -> float:
        limit = self.config.clip if self.config.clip is not None else float("inf")
        return float(nn.utils.clip_grad_norm_(self.parameters.values(), limit, foreach=True))

    def state(self) -> dict[str, Tensor]:
        """`name.exp_avg`, `name.exp_avg_sq`, `name.step` for every parameter that was updated."""
        return {
            f"{name}.{moment}": self.optimizer.state[p][moment]
            for name, p in self.parameters.items()
            if p in self.optimizer.state
            for moment in MOMENTS
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.optimizer.state.clear()
        for name, parameter in self.parameters.items():
            moments = {moment: state.get(f"{name}.{moment}") for moment in MOMENTS}
            if all(value is None for value in moments.values()):
                continue
            if any(value is None for value in moments.values()):
                raise CheckpointError(f"The optimiser's state of '{name}' is incomplete in this checkpoint.")
            self.optimizer.state[parameter] = {
                moment: value.clone() if moment == "step" else value.to(parameter.device, copy=True)
                for moment, value in moments.items()
                if value is not None
            }
