"""Two texts in one row: apart, side by side again, and the soft alignment of their words.

Letters: B batch, W words of both texts, W1 and W2 words of each, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headstart.errors import DataError
from headstart.heads.recurrent import Head, Pooled


@dataclass(frozen=True, slots=True)
class TwoTexts:
    """first: (B, W1, D) and second: (B, W2, D), zero at padding; their masks: (B, W1) and (B, W2)."""

    first: Tensor
    first_mask: Tensor
    second: Tensor
    second_mask: Tensor


class WordReader(Head):
    """The states of words, which the heads of two texts build on.

    Its LSTM reads padded rows, on a CPU in about half of a packed sequence's time, to the same states.
    """

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        joined: Tensor | None = None,
        pooled: Pooled | None = None,
        parts: Tensor | None = None,
    ) -> Tensor:
        """-> (B, W, out_width), zero at padding."""
        return self.words(x, mask, joined)

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """x: (B, W, D), finite at padding; mask: (B, W)."""
        if not isinstance(self.recurrent, nn.LSTM):
            return super().read(x, mask)
        if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise DataError("A text has real words after padding; pad texts at their end only.")
        for layer in range(self.recurrent.num_layers):
            x = lstm_layer(self.recurrent, layer, self.dropout(x), mask)
        return x

    def product_weights(self, joined: int) -> Tensor:
        """The weights that the products of recurrent words' columns start with in a_i . b_j, (out_width,).

        1 for states, which are within -1 and 1, as ESIM has it: 1 / sqrt(width) leaves their alignment flat for long
        (62% against 67% after 2 epochs of 12,000 pairs of SNLI, 2 seeds). Vectors beside them have no such bound, and
        without it each word would be aligned to one other alone.
        """
        beside = torch.full((joined,), max(1, joined) ** -0.5)
        return torch.cat([beside, torch.ones(self.out_width - joined)])

    def states(self, texts: TwoTexts, beside: TwoTexts | None) -> TwoTexts:
        """`words` of each text read alone, (B, W1, out_width) and (B, W2, out_width)."""
        first = self.words(texts.first, texts.first_mask, None if beside is None else beside.first)
        second = self.words(texts.second, texts.second_mask, None if beside is None else beside.second)
        return TwoTexts(first, texts.first_mask, second, texts.second_mask)


def split(x: Tensor, mask: Tensor, parts: Tensor | None) -> TwoTexts:
    """The two texts of each row, each padded at its end. x: (B, W, D); mask, parts: (B, W)."""
    firsts, seconds = lengths_of_texts(mask, parts)
    first_mask, second_mask = mask_of(firsts), mask_of(seconds)
    # The second text is behind the first one.
    first, second = taken(x, torch.zeros_like(firsts), first_mask), taken(x, firsts, second_mask)
    return TwoTexts(first, first_mask, second, second_mask)


def each(texts: TwoTexts, made: Callable[[Tensor, Tensor], Tensor]) -> TwoTexts:
    """What a function of a text and its mask makes of both."""
    first, second = made(texts.first, texts.first_mask), made(texts.second, texts.second_mask)
    return TwoTexts(first, texts.first_mask, second, texts.second_mask)


def joined_again(first: Tensor, second: Tensor, mask: Tensor, parts: Tensor | None) -> Tensor:
    """The inverse of `split`. first: (B, W1, D), second: (B, W2, D) -> (B, W, D), zero at padding."""
    firsts, _ = lengths_of_texts(mask, parts)
    W1, columns = first.shape[1], torch.arange(mask.shape[1], device=mask.device)
    in_first = columns < firsts[:, None]
    places = torch.where(in_first, columns, W1 + columns - firsts[:, None])
    return rows_at(torch.cat([first, second], dim=1), places, mask)


def soft_alignment(scores: Tensor, mask: Tensor) -> Tensor:
    """softmax(scores) over the real words of the last dimension; zeros where there are none.

    mask: as scores, or broadcast to them.
    """
    # The least finite number, not -inf: a softmax over -inf alone would be NaN, and so would its gradient.
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)


def lengths_of_texts(mask: Tensor, parts: Tensor | None) -> tuple[Tensor, Tensor]:
    """Words of the first and of the second text of each row, (B,) each."""
    if parts is None:
        raise ValueError(
            "This head reads two texts in a row and needs parts, (B, W): 0 in the first text, 1 in the second."
        )
    in_order = mask[:, :-1] & (parts[:, :-1] <= parts[:, 1:])
    if bool((mask[:, 1:] & ~in_order).any()):
        raise DataError("A row must hold the words of its first text, then those of its second, then padding.")
    seconds = (mask & (parts == 1)).sum(dim=1)
    return mask.sum(dim=1) - seconds, seconds


def mask_of(lengths: Tensor) -> Tensor:
    """(B,) -> (B, W), True in the first `lengths` columns. There is always a column, so that no tensor is empty."""
    return torch.arange(max(1, int(lengths.max())), device=lengths.device) < lengths[:, None]


def taken(x: Tensor, starts: Tensor, mask: Tensor) -> Tensor:
    """Of each row of x the words from its start on, as many as the mask has. starts: (B,)."""
    return rows_at(x, torch.arange(mask.shape[1], device=mask.device) + starts[:, None], mask)


def rows_at(x: Tensor, columns: Tensor, mask: Tensor) -> Tensor:
    """x[b, columns[b, w]], zero where the mask is False. x: (B, W, D); columns, mask: (B, W')."""
    B, W, D = x.shape
    # Whole rows of a flat array are copied, which is faster than gathering them value by value.
    flat = (columns + W * torch.arange(B, device=x.device)[:, None]).masked_fill(~mask, 0)
    words = x.reshape(B * W, D).index_select(0, flat.flatten()).view(*mask.shape, D)
    return words.masked_fill(~mask[..., None], 0.0)


def lstm_layer(network: nn.LSTM, layer: int, x: Tensor, mask: Tensor) -> Tensor:
    """One layer of the network over padded rows, (B, W, D) -> (B, W, H) or (B, W, 2H); anything at padding.

    torch runs oneDNN's LSTM on padded rows, but a loop of small operations on packed ones. Padding at the end of a row
    is read after its words; the backward direction reads each row's words turned round, so it is after them there too.
    """
    forward = lstm_direction(network, f"l{layer}", x)
    if not network.bidirectional:
        return forward
    backward = lstm_direction(network, f"l{layer}_reverse", turned_round(x, mask))
    return torch.cat([forward, turned_round(backward, mask)], dim=2)


def lstm_direction(network: nn.LSTM, place: str, x: Tensor) -> Tensor:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [getattr(network, f"{name}_{place}") for name in names]
    before = x.new_zeros(1, len(x), network.hidden_size)
    # With one layer its dropout is 0, and `train` only keeps what the gradient needs.
    return torch.lstm(x, (before, before), weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)[0]


def turned_round(x: Tensor, mask: Tensor) -> Tensor:
    """Each row's words in reverse order, zero at padding. x: (B, W, D)."""
    last = mask.sum(dim=1, keepdim=True) - 1
    return rows_at(x, last - torch.arange(mask.shape[1], device=mask.device), mask)
