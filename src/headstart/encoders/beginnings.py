"""What the sequences of a batch begin with, each beginning once.

One direction of an LSTM knows nothing of what comes later, so sequences that begin alike have the same states as far as
they do. All sentences begin with one mark, read backward most have a full stop after it, and some occur twice: of a
page of reviews every eighth step need not be taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Beginnings:
    """The N distinct beginnings of a batch's sequences, shortest first; those of one length are a step of the LSTM.

    words: (N,), the last word of each; sizes: how many there are of each length; before: for each length, where those
    that they go on from lie among the ones a word shorter, None if in the same order; at: (tokens,), for each token of
    the batch, the beginning that ends with it, 0 for a token that was not to be read.
    """

    words: Tensor
    sizes: list[int]
    before: list[Tensor | None]
    at: Tensor

    @staticmethod
    def of(words: Tensor, starts: Tensor, steps: Tensor, stride: int) -> Beginnings:
        """words: (tokens,) numbers of the batch's words, sequence after sequence. Of each sequence, the place of its
        first word, (B,), and how many are to be read, (B,); stride: 1 to read onwards from there, -1 to read back.
        """
        # Longest first: the sequences that go on are then the first ones, and so are the beginnings that do.
        steps, order = steps.sort(descending=True, stable=True)
        longest = int(steps[0]) if len(steps) else 0
        all_places = starts[order] + stride * torch.arange(longest, device=words.device)[:, None]  # (longest, B)
        alive = steps > torch.arange(longest, device=words.device)[:, None]
        counts = alive.sum(dim=1).tolist()
        at, total = torch.zeros_like(words), 0
        found, sizes = [], []
        before: list[Tensor | None] = []
        own = torch.zeros_like(starts)  # of each sequence, its beginning among those of the length just read
        for n, places in zip(counts, all_places, strict=True):
            first, parents, own = extended(own[:n], words[places[:n]])
            at[places[:n]] = total + own
            found.append(words[places[first]])
            sizes.append(len(first))
            before.append(parents)
            total += len(first)
            if len(first) == n:
                break  # all differ, and so do those that are longer
        rest = all_places[len(sizes) :][alive[len(sizes) :]]
        at[rest] = total + torch.arange(len(rest), device=words.device)
        before += [None] * (longest - len(sizes))
        sizes += counts[len(sizes) :]
        return Beginnings(torch.cat([*found, words[rest]]), sizes, before, at)


def extended(own: Tensor, words: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
    """Sequences' beginnings, made longer by a word each: the first sequence of each new one, what it goes on from, and
    the sequences' new numbers. New ones are numbered as they appear. own, words: (n,).
    """
    _, group = torch.unique(own * (words.max() + 1) + words, return_inverse=True)
    first, numbers = order_by_appearance(group)
    parents = own[first]
    in_order = bool((parents == torch.arange(len(first), device=own.device)).all())
    return first, None if in_order else parents, numbers


def order_by_appearance(group: Tensor) -> tuple[Tensor, Tensor]:
    """Number the groups by their first member. group: (N,) -> that member's index, (U,), and the new numbers, (N,)."""
    n_groups = int(group.max()) + 1 if len(group) else 0
    index = torch.arange(len(group), device=group.device)
    first = index.new_full((n_groups,), len(group)).scatter_reduce_(0, group, index, "amin")
    first, order = first.sort()
    rank = torch.empty_like(order).scatter_(0, order, index[:n_groups])
    return first, rank.index_select(0, group)
