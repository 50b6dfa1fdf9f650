"""Linear layers in 8-bit integers: up to twice as fast as float32 on a plain CPU, with nearly the same vectors.

Each weight row is integers times one scale, and so is each row of the input, whose scale is measured when it arrives.
Rows are quantised one by one and sums of integers are exact, so a sentence's vectors do not depend on its neighbours.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.encoders.kernels.bert_block import BlockParts, attend, scatter, select
from headstart.encoders.kernels.layout import Layout
from headstart.errors import ConfigError

INPUT_STEPS, WEIGHT_STEPS = 255, 127
"""Inputs are 0 to 255, weights -127 to 127."""
PAIR_STEPS = 127
"""Largest sum of two neighbouring weights. Processors without VNNI add the products of two neighbours in 16 bits, where
255 * 128 is the most that fits, and rounding may add one to a pair of weights."""
SMALLEST_STEP = 1e-30
"""So that a row of zeros does not divide by zero."""
ROUNDING = float(2**23)
"""A float32 from 0 to 255 plus 2^23 has no bits left for fractions: it is rounded, with the integer in its low byte."""


class Int8Linear(nn.Module):
    """x W^T + b with integers inside, for inference. It never changes, so copies share it."""

    packed: Tensor
    scale: Tensor
    zero_points: Tensor
    row_sums: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """weight: (O, I); bias: (O,)."""
        super().__init__()
        check_processor()
        self.out_features, self.in_features = weight.shape
        weight = weight.detach().float()
        scale = weight_steps(weight)
        # oneDNN wants the weights in its own blocked order, made once. Row sums are for the inputs' offset in forward.
        whole = (weight / scale[:, None]).round().to(torch.int8)
        parts = {
            "packed": torch.ops.onednn.qlinear_prepack(whole, None),
            "scale": scale,
            "zero_points": torch.zeros(self.out_features, dtype=torch.int32),
            "row_sums": whole.sum(1) * scale,
            "bias": torch.zeros(self.out_features) if bias is None else bias.detach().float().clone(),
        }
        for name, part in parts.items():
            self.register_buffer(name, part, persistent=False)

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8Linear:
        return cls(linear.weight, linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., I) -> (..., O)."""
        if x.requires_grad and torch.is_grad_enabled():
            raise ConfigError("An int8 encoder is for inference only and has no gradients. Train the float32 one.")
        rows = x.reshape(-1, self.in_features)
        # Each row on its own grid of 256 steps from its smallest to its largest value. Adding ROUNDING and reading the
        # float's bits as an integer rounds and converts in one pass; `to(uint8)` keeps the low byte.
        low = rows.amin(1, keepdim=True)
        step = (rows.amax(1, keepdim=True) - low).div_(INPUT_STEPS).clamp_(min=SMALLEST_STEP)
        whole = (rows - low).div_(step).add_(ROUNDING).view(torch.int32).to(torch.uint8)
        y = product(whole, self.packed, self.scale, self.zero_points)
        # x = low + step * whole, hence x W^T = step * (whole W^T) + low * (the sum of each row of W).
        torch.addcmul(self.bias, y, step, out=y).addcmul_(low, self.row_sums)
        return y.view(*x.shape[:-1], self.out_features)

    @property
    def size(self) -> int:
        """Bytes of its buffers."""
        return sum(part.numel() * part.element_size() for part in self.buffers())

    def get_extra_state(self) -> None:
        """torch calls this for `state_dict`: refuse, because the packed weights fit one processor only."""
        raise ConfigError("An int8 encoder cannot be saved, exported or used for cached features. Use the float32 one.")

    def __deepcopy__(self, memo: dict[int, object]) -> Int8Linear:
        return self


def weight_steps(weight: Tensor) -> Tensor:
    """The smallest step of each row with which all sums fit into 16 bits. (O, I) -> (O,)."""
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).view(len(weight), -1, 2)
    # Inputs are never negative, so weights of opposite sign cancel: the worst sums have all weights of one sign.
    greatest_pair = torch.maximum(pairs.clamp(min=0).sum(2), pairs.clamp(max=0).sum(2).neg()).amax(1)
    steps = torch.maximum(greatest_pair / PAIR_STEPS, weight.abs().amax(1) / WEIGHT_STEPS)
    return steps.clamp(min=SMALLEST_STEP)


class Int8Block(nn.Module):
    """A block of BERT for inference, with its linear layers in int8.

    Quantising can turn a difference in the last bit into a whole step. So not even the last bit may depend on a
    sequence's neighbours: attention takes sequences of one length together and never computes on padding.
    """

    def __init__(self, block: BlockParts) -> None:
        super().__init__()
        self.heads = block.heads
        self.query_key_value = Int8Linear.of(block.query_key_value)
        self.attention_out = Int8Linear.of(block.attention_out)
        self.inner = Int8Linear.of(block.inner)
        self.outer = Int8Linear.of(block.outer)
        self.attention_norm, self.norm = block.attention_norm, block.norm

    def forward(self, x: Tensor, layout: Layout, wanted: Tensor | None = None) -> Tensor:
        """(N, D) -> (N, D), as `headstart.encoders.bert.Block`. wanted: the rows to compute, by default all."""
        N = len(x)
        x, attended = select(wanted, x, attend(self.query_key_value(x), self.heads, layout))
        x = self.attention_norm(x + self.attention_out(attended))
        x = self.norm(x + self.outer(F.gelu(self.inner(x))))
        return scatter(x, wanted, N)


def product(whole: Tensor, packed: Tensor, scale: Tensor, zero_points: Tensor) -> Tensor:
    """(N, I) bytes times packed (O, I) -> (N, O) float32: exact integer sums, each column times its scale."""
    found: Tensor = torch.ops.onednn.qlinear_pointwise(
        whole, 1.0, 0, packed, scale, zero_points, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found


@lru_cache(maxsize=1)
def check_processor() -> None:
    """Try the largest sums once: a processor or a torch that overflows must be refused, not give wrong vectors."""
    pairs = torch.tensor([[127, 1], [1, 127], [64, 64], [127, -127], [-127, -1]], dtype=torch.int8)
    weight = pairs.repeat(1, 32)
    whole = torch.full((1, weight.shape[1]), INPUT_STEPS, dtype=torch.uint8)
    try:
        packed = torch.ops.onednn.qlinear_prepack(weight, None)
        found = product(whole, packed, torch.ones(len(pairs)), torch.zeros(len(pairs), dtype=torch.int32))
    except (RuntimeError, AttributeError) as error:
        raise ConfigError("This torch has no int8 products for this processor. Use the precision float32.") from error
    if found[0].tolist() != (INPUT_STEPS * weight.long().sum(1)).tolist():
        raise ConfigError("The int8 products of this processor overflow. Use the precision float32.")
