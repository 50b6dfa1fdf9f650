"""Linear layers in 8-bit integers: up to twice as quick as float32 on a plain processor, nearly the same vectors.

A weight row is whole numbers times one scale; so is every row of the input, which is measured when it comes. Rows are
measured one by one and sums of whole numbers are exact, so that what a sentence gets does not hang on its neighbours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.encoders.bert import Bert, Block
from headstart.encoders.bert_in_use import attend, only, spread
from headstart.encoders.layout import Layout
from headstart.errors import ConfigError

INPUT_STEPS, WEIGHT_STEPS = 255, 127
PAIR_STEPS = 127
"""Processors without VNNI add the products of two neighbours in 16 bits: 255 * 128 is the most that fits, and rounding
may add one to a pair of weights."""
SMALLEST_STEP = 1e-30
ROUNDING = float(2**23)
"""Added to a float32 from 0 to 255, it rounds it to a whole number and leaves that in the lowest byte."""


class QuantisedLinear(nn.Module):
    """x W^T + b with whole numbers inside, for use without gradients. It never changes, so copies share it."""

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
    def of(cls, linear: nn.Linear) -> QuantisedLinear:
        return cls(linear.weight, linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., I) -> (..., O)."""
        if x.requires_grad and torch.is_grad_enabled():
            raise ConfigError("An int8 encoder is for use only and has no gradients. Train the float32 one.")
        rows = x.reshape(-1, self.in_features)
        low = rows.amin(1, keepdim=True)
        step = (rows.amax(1, keepdim=True) - low).div_(INPUT_STEPS).clamp_(min=SMALLEST_STEP)
        whole = (rows - low).div_(step).add_(ROUNDING).view(torch.int32).to(torch.uint8)
        y = product(whole, self.packed, self.scale, self.zero_points)
        # x = low + step * whole, so x W^T = step * (whole W^T) + low * (the sum of each row of W).
        torch.addcmul(self.bias, y, step, out=y).addcmul_(low, self.row_sums)
        return y.view(*x.shape[:-1], self.out_features)

    @property
    def size(self) -> int:
        """Bytes that it keeps."""
        return sum(part.numel() * part.element_size() for part in self.buffers())

    def get_extra_state(self) -> None:
        """Called when it is to be saved."""
        raise ConfigError(
            "An int8 encoder cannot be saved, exported or used for cached features. Take the float32 one."
        )

    def __deepcopy__(self, memo: dict[int, object]) -> QuantisedLinear:
        return self


def weight_steps(weight: Tensor) -> Tensor:
    """The finest grid of each row on which all sums fit. (O, I) -> (O,)."""
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).view(len(weight), -1, 2)
    # Neighbours of different sign take from each other: only the greater matters.
    greatest_pair = torch.maximum(pairs.clamp(min=0).sum(2), pairs.clamp(max=0).sum(2).neg()).amax(1)
    steps = torch.maximum(greatest_pair / PAIR_STEPS, weight.abs().amax(1) / WEIGHT_STEPS)
    return steps.clamp(min=SMALLEST_STEP)


class QuantisedBlock(nn.Module):
    """A block of BERT in use, with its linear layers in int8.

    Rounding to whole numbers makes large differences of the smallest ones, so nothing may depend on a sequence's
    neighbours, not even the last bit: attention takes sequences of one length together and never sees padding.
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.heads = block.heads
        self.query_key_value = QuantisedLinear.of(block.query_key_value)
        self.attention_out = QuantisedLinear.of(block.attention_out)
        self.inner = QuantisedLinear.of(block.inner)
        self.outer = QuantisedLinear.of(block.outer)
        self.attention_norm, self.norm = block.attention_norm, block.norm

    def forward(self, x: Tensor, layout: Layout, wanted: Tensor | None = None) -> Tensor:
        """(N, D) -> (N, D), as `headstart.encoders.bert.Block`."""
        N = len(x)
        x, attended = only(wanted, x, attend(self.query_key_value(x), self.heads, layout))
        x = self.attention_norm(x + self.attention_out(attended))
        x = self.norm(x + self.outer(F.gelu(self.inner(x))))
        return spread(x, wanted, N)


def product(whole: Tensor, packed: Tensor, scale: Tensor, zero_points: Tensor) -> Tensor:
    """(N, I) bytes times packed (O, I) -> (N, O) float32: exact sums, each column times its scale."""
    found: Tensor = torch.ops.onednn.qlinear_pointwise(
        whole, 1.0, 0, packed, scale, zero_points, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found


@lru_cache(maxsize=1)
def check_processor() -> None:
    """Try the greatest sums once: a processor or a torch that cannot do them must not give wrong vectors."""
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


def quantised(encoder: nn.Module) -> nn.Module:
    """A copy of a BERT whose blocks multiply in int8. Embeddings, norms and the pooler are shared with the original."""
    if not isinstance(encoder, Bert):
        raise ConfigError(
            "int8 is for BERT: word vectors multiply nothing, and most of ELMo's time is its LSTM, which would stay "
            "float32. Use the precision float32."
        )
    shared = {id(tensor): tensor for tensor in [*encoder.parameters(), *encoder.buffers()]}
    twin = copy.deepcopy(encoder, shared)
    twin.blocks = nn.ModuleList(QuantisedBlock(block) if isinstance(block, Block) else block for block in twin.blocks)
    return twin


PRECISIONS: dict[str, Callable[[nn.Module], nn.Module]] = {"float32": lambda encoder: encoder, "int8": quantised}
"""What an encoder becomes in each."""
