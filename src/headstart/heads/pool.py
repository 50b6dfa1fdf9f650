"""Pooling: one vector per text from the vectors of its words.

Letters: B batch, W words, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Pool(nn.Module):
    """x: (B, W, D), zero at padding; mask: (B, W) -> (B, D), zeros for a text without words.

    backward: how many of the last columns come from reading the text backward.
    """

    def __init__(self, width: int, backward: int) -> None:
        super().__init__()
        self.out_width = width
        self.split = width - backward


class LastPool(Pool):
    """Each direction's final state: the last word's for the forward columns, the first word's for the backward ones."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        forward = x[torch.arange(len(x), device=x.device), last, : self.split]
        return torch.cat([forward, x[:, 0, self.split :]], dim=1)


class MeanPool(Pool):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


class MaxPool(Pool):
    """The largest value of each column."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        largest = x.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
        return largest.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)


class AttentionPool(Pool):
    """sum_w a_w x_w, with a = softmax(x . query) over the real words."""

    def __init__(self, width: int, backward: int) -> None:
        super().__init__(width, backward)
        self.query = nn.Parameter(torch.zeros(width))  # zeros, so that training starts from the mean

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        # The least finite number, not -inf: a softmax over -inf alone (a text without words) would be NaN.
        scores = (x @ self.query).masked_fill(~mask, torch.finfo(x.dtype).min)
        return torch.einsum("bw,bwd->bd", scores.softmax(dim=1), x)


class FirstPool(Pool):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x[:, 0]


POOLS: dict[str, type[Pool]] = {
    "last": LastPool,
    "mean": MeanPool,
    "max": MaxPool,
    "attention": AttentionPool,
    "first": FirstPool,
}


class SeveralPools(Pool):
    """Several pools side by side, such as the final states, the maximum and the mean (Howard and Ruder 2018)."""

    def __init__(self, names: Sequence[str], width: int, backward: int) -> None:
        super().__init__(width, backward)
        self.pools = nn.ModuleList(POOLS[name](width, backward) for name in names)
        self.out_width = len(names) * width

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([pool(x, mask) for pool in self.pools], dim=1)


def pool_names(pool: str) -> list[str]:
    """The pools that are joined by +. `first` stands alone: its first word may be an encoder's mark."""
    names = pool.split("+")
    unknown = [name for name in names if name not in POOLS]
    if unknown:
        raise ValueError(
            f"network.pool: there is no pool '{unknown[0]}'; there are {', '.join(POOLS)}, and a+b for both"
        )
    if len(names) > 1 and ("first" in names or len(set(names)) < len(names)):
        raise ValueError(f"network.pool '{pool}': wanted different pools joined by +, and 'first' only by itself")
    return names


def build_pool(pool: str, width: int, backward: int) -> Pool:
    names = pool_names(pool)
    return POOLS[names[0]](width, backward) if len(names) == 1 else SeveralPools(names, width, backward)
