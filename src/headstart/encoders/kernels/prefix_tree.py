"""The shared prefixes of a batch's sequences, each computed once.

One direction of an LSTM knows nothing of later words, so sequences with a common prefix have equal states up to its
end. All sentences begin with the same mark, read backward most have a full stop next, and some occur twice. In a page
of film reviews every eighth step is saved.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """The N distinct prefixes of a batch's sequences, shortest first; those of one length are one step of the LSTM.

    words: (N,), the last word of each prefix. sizes: how many prefixes there are of each length. parents: for each
    length, which of the prefixes that are one word shorter they extend; None if the first ones, in order.
    node_of_token: (tokens,), for each token of the batch, the prefix that ends with it; 0 for tokens not to be read.
    """

    words: Tensor
    sizes: list[int]
    parents: list[Tensor | None]
    node_of_token: Tensor

    @staticmethod
    def of(words: Tensor, starts: Tensor, steps: Tensor, stride: int) -> PrefixTree:
        """words: (tokens,) numbers of the batch's words, sequence after sequence; starts: (B,), the position of each
        sequence's first word; steps: (B,), how many of its words to read; stride: 1 to read forward, -1 backward.
        """
        # Longest first: at every step the sequences still alive are then the first ones, and so are their prefixes.
        steps, order = steps.sort(descending=True, stable=True)
        longest = int(steps[0]) if len(steps) else 0
        all_places = starts[order] + stride * torch.arange(longest, device=words.device)[:, None]  # (longest, B)
        alive = steps > torch.arange(longest, device=words.device)[:, None]
        counts = alive.sum(dim=1).tolist()
        node_of_token, total = torch.zeros_like(words), 0
        found, sizes = [], []
        parents: list[Tensor | None] = []
        node = torch.zeros_like(starts)  # of each sequence, its prefix among those of the length just read
        for n, places in zip(counts, all_places, strict=True):
            first, of_step, node = extend(node[:n], words[places[:n]])
            node_of_token[places[:n]] = total + node
            found.append(words[places[first]])
            sizes.append(len(first))
            parents.append(of_step)
            total += len(first)
            if len(first) == n:
                break  # all prefixes differ from here on, so every later token is a node of its own
        rest = all_places[len(sizes) :][alive[len(sizes) :]]
        node_of_token[rest] = total + torch.arange(len(rest), device=words.device)
        parents += [None] * (longest - len(sizes))
        sizes += counts[len(sizes) :]
        return PrefixTree(torch.cat([*found, words[rest]]), sizes, parents, node_of_token)


def extend(node: Tensor, words: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
    """Extend each sequence's prefix by a word. node, words: (n,), the sequences' prefixes and next words.

    Returns the first sequence of each new prefix, the prefixes that they extend, and the sequences' new prefixes.
    """
    # A prefix and a word as one number, so that equal extensions are equal numbers.
    _, group = torch.unique(node * (words.max() + 1) + words, return_inverse=True)
    first, numbers = order_by_appearance(group)
    parents = node[first]
    # None instead of 0, 1, 2, ..: the LSTM then takes a view of the step before and not a copy.
    in_order = bool((parents == torch.arange(len(first), device=node.device)).all())
    return first, None if in_order else parents, numbers


def order_by_appearance(group: Tensor) -> tuple[Tensor, Tensor]:
    """Number groups by their first member. group: (N,) -> the index of that member, (U,), and the new numbers, (N,).

    `torch.unique` sorts by value, which for words is a hash. The rounding of a matrix product may depend on the row,
    and no word's vector should depend on hash values.
    """
    n_groups = int(group.max()) + 1 if len(group) else 0
    index = torch.arange(len(group), device=group.device)
    first = index.new_full((n_groups,), len(group)).scatter_reduce_(0, group, index, "amin")
    first, order = first.sort()
    rank = torch.empty_like(order).scatter_(0, order, index[:n_groups])
    return first, rank.index_select(0, group)
