"""Spelled words on their way through the character convolutions: distinct words, their lengths, the max over a word.

Letters: U distinct words, C characters per word, E width of a character, n filters of one width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from headstart.encoders.kernels.prefix_tree import order_by_appearance
from headstart.encoders.kernels.word_cache import hashes_of
from headstart.text.characters import N_CHARACTERS, PADDING

WORD_PADDING = PADDING
"""After the characters of a word."""
BATCH_PADDING = 0
"""At positions of a batch that hold no word."""


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of (N, C) ids, (U, C), in order of appearance, and the number of each row among them, (N,)."""
    rows = rows.long()
    # Sorting 64-bit hashes is many times faster than sorting rows. The result is compared with the rows, so that a
    # collision of hashes only costs the slow, exact way below.
    _, group = torch.unique(hashes_of(rows), return_inverse=True)
    first, inverse = order_by_appearance(group)
    distinct = rows.index_select(0, first)
    if torch.equal(distinct.index_select(0, inverse), rows):
        return distinct, inverse
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    first, inverse = order_by_appearance(group)
    return rows.index_select(0, first), inverse


def lengths_of(characters: Tensor) -> Tensor:
    """(U, C) -> (U,), characters up to the last one that is not padding."""
    real = (characters != WORD_PADDING) & (characters != BATCH_PADDING)
    position = torch.arange(1, characters.shape[1] + 1, device=characters.device)
    return (real * position).amax(dim=1)


def trim(characters: Tensor, lengths: Tensor, widest: int) -> Tensor:
    """Cut columns that cannot change the max: the word padding beyond one window of nothing but padding."""
    longest = int(lengths.max()) if len(lengths) else 0
    return characters[:, : longest + widest]


def max_over_word(ids: Tensor, lengths: Tensor, characters: Tensor, weight: Tensor) -> Tensor:
    """max over positions p of sum_j characters[ids[p + j]] @ weight[j]: (U, C), (262, E), (width, E, n) -> (U, n).

    lengths: (U,), longest first. Windows that begin after a word's end hold only padding and are all equal, so one of
    them is enough.
    """
    greatest: Tensor = _MaxOverWord.apply(ids, lengths, characters, weight)  # type: ignore[no-untyped-call]
    return greatest


class _MaxOverWord(torch.autograd.Function):
    """A convolution over 262 possible characters: characters @ weight[j] is a small table, so that a window's value is
    the sum of `width` looked-up rows, and no product over all windows is needed.

    The gradient of a max flows to one window only, so it is summed per offset and character, in the table's shape.
    """

    @staticmethod
    def forward(ctx: Any, ids: Tensor, lengths: Tensor, characters: Tensor, weight: Tensor) -> Tensor:
        width = len(weight)
        table = (characters @ weight).flatten(0, 1)  # (width * 262, n)
        offsets = torch.arange(width, device=ids.device) * N_CHARACTERS
        windows = ids.unfold(1, width, 1).transpose(0, 1) + offsets  # (positions, U, width)
        # Words are sorted by length, so at each position the words that reach it are the first n.
        reached = (lengths >= torch.arange(len(windows), device=ids.device)[:, None]).sum(dim=1).tolist()
        greatest = F.embedding_bag(windows[0], table, mode="sum")
        needs_gradient = any(ctx.needs_input_grad)
        # Each max's position, for the gradient, as a float: torch's comparisons and products of floats are an order of
        # magnitude faster than filling by a mask. A later position wins only if its value is strictly larger.
        where, improved = torch.zeros_like(greatest), torch.empty_like(greatest)
        for position, n in enumerate(reached[1:], start=1):
            if not n:
                break
            values = F.embedding_bag(windows[position, :n], table, mode="sum")
            if needs_gradient:
                torch.gt(values, greatest[:n], out=improved[:n])
                torch.maximum(where[:n], improved[:n].mul_(position), out=where[:n])
            torch.maximum(greatest[:n], values, out=greatest[:n])
        ctx.save_for_backward(ids, characters, weight, where)
        return greatest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, Tensor]:
        ids, characters, weight, where = ctx.saved_tensors
        # For each offset j, the character at (max's position + j) gets the gradient in its row of table j.
        where = where.long()
        grad_table = grad.new_zeros(len(weight), N_CHARACTERS, grad.shape[1])
        for offset, grad_rows in enumerate(grad_table):
            grad_rows.scatter_add_(0, ids.gather(1, where + offset), grad)
        # table[j] = characters @ weight[j], so both gradients are small products with the table's gradient.
        grad_characters = torch.einsum("wcn,wen->ce", grad_table, weight)
        grad_characters[BATCH_PADDING] = 0
        grad_weight = characters.t() @ grad_table
        return None, None, grad_characters, grad_weight
