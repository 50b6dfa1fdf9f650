"""A block of BERT without gradients, on a core of its own: the values of `bert.Block`, with less memory traffic.

The wide arrays between two products are reused by every block. Fresh memory comes from the system page by page, each
of them cleared, which was measured at an eighth of the whole time. Attention takes sequences of one length together and
so never computes on padding.
"""

from __future__ import annotations

from itertools import groupby
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.encoders.kernels.layout import Layout
from headstart.encoders.kernels.linear import Linear, multiply
from headstart.encoders.kernels.memory import Scratch

scratch = Scratch()


class BlockParts(Protocol):
    """The layers of `headstart.encoders.bert.Block`."""

    heads: int
    query_key_value: Linear
    attention_out: Linear
    attention_norm: nn.LayerNorm
    inner: Linear
    outer: Linear
    norm: nn.LayerNorm


def infer_block(block: BlockParts, x: Tensor, layout: Layout, wanted: Tensor | None = None) -> Tensor:
    """(N, D) -> (N, D), as a block in evaluation. wanted: the rows to compute, by default all."""
    N = len(x)
    attended = attend(linear(x, block.query_key_value, "query, key, value"), block.heads, layout)
    x, attended = select(wanted, x, attended)
    # Residuals and GELU are applied in place to the products' buffers. x itself may be a layer that the caller keeps,
    # so it is only ever added, never written to.
    x = block.attention_norm(linear(attended, block.attention_out, "output").add_(x))
    wide = torch.ops.aten.gelu_(linear(x, block.inner, "inner"))
    return scatter(block.norm(linear(wide, block.outer, "output").add_(x)), wanted, N)


def select(wanted: Tensor | None, x: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
    """The wanted rows. After attention no row depends on another, so the others need not be computed any further."""
    if wanted is None:
        return x, attended
    return x.index_select(0, wanted), attended.index_select(0, wanted)


def scatter(x: Tensor, wanted: Tensor | None, N: int) -> Tensor:
    """The inverse of `select`: the rows at their places among the N, zeros elsewhere."""
    return x if wanted is None else x.new_zeros(N, x.shape[1]).index_copy_(0, wanted, x)


def linear(x: Tensor, layer: Linear, name: str) -> Tensor:
    """x W^T + b, in the scratch buffer called `name`."""
    return multiply(x, layer.weight.t(), scratch.take(name, len(x), layer.out_features)).add_(layer.bias)


def attend(query_key_value: Tensor, heads: int, layout: Layout) -> Tensor:
    """(N, 3 D) -> (N, D)."""
    N, D = len(query_key_value), query_key_value.shape[1] // 3
    split = query_key_value.view(N, 3, heads, D // heads)
    attended = scratch.take("attended", N, D)
    # Sequences of one length lie one after the other, so that a run of them is a view without padding or copy.
    for T, rows in rows_by_length(layout):
        q, k, v = (
            split[rows].view(-1, T, 3, heads, D // heads).permute(2, 0, 3, 1, 4).unbind()
        )  # each (B, heads, T, D / heads)
        own = attended[rows].view(-1, T, heads, D // heads)
        own.copy_(F.scaled_dot_product_attention(q, k, v).transpose(1, 2))
    return attended


def rows_by_length(layout: Layout) -> list[tuple[int, slice]]:
    """Each run of sequences of one length: that length, and its rows among the N."""
    B, T = layout.shape
    lengths = [T] * B if layout.visible is None else layout.visible.sum(dim=-1).flatten().tolist()
    found, start = [], 0
    for length, run in groupby(length for length in lengths if length):
        end = start + length * len(list(run))
        found.append((length, slice(start, end)))
        start = end
    return found
