"""A block of BERT as it runs on a core of its own when no gradient is wanted: the values of `Block`, in memory kept for
the next block.

Fresh memory is given by the system page by page, and cleared: for the wide arrays between two products that costs an
eighth of the whole. Attention takes sequences of one length together, and so never sees padding.
"""

from __future__ import annotations

from itertools import groupby
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.encoders.layout import Layout
from headstart.encoders.linear import Linear, multiply
from headstart.encoders.memory import Scratch

scratch = Scratch()


class Parts(Protocol):
    """What a block is made of: see `headstart.encoders.bert.Block`."""

    heads: int
    query_key_value: Linear
    attention_out: Linear
    attention_norm: nn.LayerNorm
    inner: Linear
    outer: Linear
    norm: nn.LayerNorm


def block_in_use(block: Parts, x: Tensor, layout: Layout, wanted: Tensor | None = None) -> Tensor:
    """(N, D) -> (N, D), as a block in evaluation. x stays as it is. wanted: rows to be finished, by default all."""
    N = len(x)
    attended = attend(linear(x, block.query_key_value, "query, key, value"), block.heads, layout)
    x, attended = only(wanted, x, attended)
    x = block.attention_norm(linear(attended, block.attention_out, "output").add_(x))
    wide = torch.ops.aten.gelu_(linear(x, block.inner, "inner"))
    return spread(block.norm(linear(wide, block.outer, "output").add_(x)), wanted, N)


def only(wanted: Tensor | None, x: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
    """After attention a row needs no other, so that rows which nobody asks for can be left behind."""
    if wanted is None:
        return x, attended
    return x.index_select(0, wanted), attended.index_select(0, wanted)


def spread(x: Tensor, wanted: Tensor | None, N: int) -> Tensor:
    """The rows where they were among the N, zeros between them."""
    return x if wanted is None else x.new_zeros(N, x.shape[1]).index_copy_(0, wanted, x)


def linear(x: Tensor, layer: Linear, name: str) -> Tensor:
    return multiply(x, layer.weight.t(), scratch.take(name, len(x), layer.out_features)).add_(layer.bias)


def attend(query_key_value: Tensor, heads: int, layout: Layout) -> Tensor:
    """(N, 3 D) -> (N, D)."""
    N, D = len(query_key_value), query_key_value.shape[1] // 3
    split = query_key_value.view(N, 3, heads, D // heads)
    attended = scratch.take("attended", N, D)
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
