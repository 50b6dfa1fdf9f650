"""ELMo's character network: a word's vector from its spelling alone (Kim et al. 2016).

Letters: U distinct words, C characters per word, E width of a character, F filters in all, P projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from headstart.cores import on_cores
from headstart.encoders.beginnings import order_by_appearance
from headstart.encoders.linear import Linear
from headstart.encoders.word_memory import RecentWords, RememberedWords, hashes_of

N_CHARACTERS = 262
BATCH_PADDING = 0
WORD_PADDING = 261
CARRYING_BIAS = -2.0

Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "tanh": torch.tanh}


class CharacterNetwork(nn.Module):
    """Character embeddings, filters of several widths, their greatest value over the word, highways, a projection.

    Initial values are the original code's: characters uniform in [-1, 1], filters in [-0.05, 0.05] (before a tanh:
    normal, as the dense layers), dense layers normal with variance 1 / inputs, and gates that start closed so that the
    highways carry their input on. `activation` is the filters'; the highways always have a relu, as the original's.
    """

    def __init__(
        self,
        filters: list[list[int]],
        char_width: int,
        highway: int,
        projection: int,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.activation = activation
        self.remembered: RememberedWords | None = None
        self.recent = RecentWords()
        self.widest = max(width for width, _ in filters)
        n_filters = sum(count for _, count in filters)
        self.characters = nn.Parameter(torch.empty(N_CHARACTERS, char_width).uniform_(-1, 1))
        self.filters = nn.ParameterList(
            initial_filter(torch.empty(width, char_width, count), activation) for width, count in filters
        )
        self.filter_bias = nn.Parameter(torch.zeros(n_filters))
        self.highways = nn.ModuleList(Highway(n_filters) for _ in range(highway))
        self.projection = Linear(n_filters, projection)
        nn.init.normal_(self.projection.weight, std=1 / math.sqrt(n_filters))
        nn.init.zeros_(self.projection.bias)
        with torch.no_grad():
            self.characters[BATCH_PADDING] = 0

    def forward(self, characters: Tensor, keep: bool = False) -> Tensor:
        """characters: (B, T, C) -> (B, T, P), running each distinct word once. keep: see `distinct`."""
        vectors, numbers = self.distinct(characters.flatten(0, -2), keep)
        return vectors.index_select(0, numbers).view(*characters.shape[:-1], -1)

    def distinct(self, characters: Tensor, keep: bool = False) -> tuple[Tensor, Tensor]:
        """characters: (N, C) -> vectors of the distinct words, (U, P), and the number of each word among them, (N,).

        keep: in use, take the vectors of words that earlier calls with `keep` computed. They may differ in the last bit
        from those of a network that has not seen those calls.
        """
        distinct, numbers = distinct_rows(characters)
        may_learn = torch.is_grad_enabled() and any(p.requires_grad for p in self.parameters())
        if may_learn:
            self.forget()  # a fused optimiser leaves no trace in the weights' versions
        if may_learn and self.training:
            self.remembered = None  # they would be those of a network that is no more
        vectors = self.words(distinct) if self.training or may_learn else self._recall(distinct, keep)
        return vectors, numbers

    def words(self, characters: Tensor) -> Tensor:
        """characters: (U, C) -> (U, P)."""
        lengths = lengths_of(characters)
        # Longest first, so that at every position the words that reach it are the first ones.
        lengths, order = lengths.sort(descending=True, stable=True)
        characters = trim(characters, lengths, self.widest).long().index_select(0, order)
        maxima = [greatest_over_word(characters, lengths, self.characters, weight) for weight in self.filters]
        x = ACTIVATIONS[self.activation](torch.cat(maxima, dim=1) + self.filter_bias)
        for highway in self.highways:
            x = highway(x)
        projected: Tensor = self.projection(x)
        return projected.index_select(0, order.argsort())

    def remember(self, characters: Tensor, vectors: Tensor) -> None:
        """Take these words' vectors from now on instead of computing them. characters: (V, C); vectors: (V, P).

        They are no part of the weights: they are not saved, are not looked at while the network may learn, and are
        forgotten once it does.
        """
        self.remembered = RememberedWords(characters, vectors)

    def forget(self) -> None:
        """Compute every word anew that was not given to `remember`."""
        self.recent = RecentWords()

    def _recall(self, distinct: Tensor, keep: bool) -> Tensor:
        """`words`, but taking the vectors that are remembered, or that were computed lately. (U, C) -> (U, P)."""
        compute = self._recent_or_computed if keep else self._on_cores
        if self.remembered is None:
            return compute(distinct)
        known, vectors = self.remembered.look_up(distinct)
        found = vectors.new_empty(len(distinct), vectors.shape[1])
        found[known] = vectors
        if not bool(known.all()):
            found[~known] = compute(distinct[~known]).to(found.dtype)
        return found

    def _recent_or_computed(self, distinct: Tensor) -> Tensor:
        versions = tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in self.parameters())
        if self.recent.weights != versions:
            self.recent = RecentWords(versions)
        return self.recent.vectors_of(distinct, self._on_cores)

    def _on_cores(self, distinct: Tensor) -> Tensor:
        """`words`, where every core has some of them."""
        cores = torch.get_num_threads() if distinct.device.type == "cpu" else 1
        parts = [distinct[part::cores] for part in range(min(cores, len(distinct)))]
        found = distinct.new_empty(len(distinct), self.projection.out_features, dtype=self.projection.weight.dtype)
        for part, vectors in enumerate(on_cores([partial(self.words, mine) for mine in parts])):
            found[part::cores] = vectors
        return found


def initial_filter(weight: Tensor, activation: Activation) -> Tensor:
    """weight: (width, E, n)."""
    if activation == "tanh":
        return weight.normal_(std=1 / math.sqrt(weight.shape[0] * weight.shape[1]))
    return weight.uniform_(-0.05, 0.05)


class Highway(nn.Module):
    """y = gate * relu(transform x) + (1 - gate) * x (Srivastava et al. 2015)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform_and_gate = Linear(width, 2 * width)  # one product for both
        nn.init.normal_(self.transform_and_gate.weight, std=1 / math.sqrt(width))
        with torch.no_grad():
            self.transform_and_gate.bias[:width] = 0
            self.transform_and_gate.bias[width:] = CARRYING_BIAS

    def forward(self, x: Tensor) -> Tensor:
        transform, gate = self.transform_and_gate(x).chunk(2, dim=-1)
        return torch.lerp(x, F.relu(transform), torch.sigmoid(gate))


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of (N, C) ids, (U, C), as they first appear, and for each of the N rows its place among them.

    Rows are told apart by a 64-bit hash and then compared, so that a collision only costs the slower, exact way. A
    matrix product's rounding may depend on the row a word lies in, so a word's row should not hang on its hash.
    """
    rows = rows.long()
    _, group = torch.unique(hashes_of(rows), return_inverse=True)
    first, inverse = order_by_appearance(group)
    distinct = rows.index_select(0, first)
    if torch.equal(distinct.index_select(0, inverse), rows):
        return distinct, inverse
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    first, inverse = order_by_appearance(group)
    return rows.index_select(0, first), inverse


def lengths_of(characters: Tensor) -> Tensor:
    """(U, C) -> (U,), characters up to the last that is no padding."""
    real = (characters != WORD_PADDING) & (characters != BATCH_PADDING)
    position = torch.arange(1, characters.shape[1] + 1, device=characters.device)
    return (real * position).amax(dim=1)


def trim(characters: Tensor, lengths: Tensor, widest: int) -> Tensor:
    """Cut what cannot change the greatest value: the word padding beyond one window of nothing but padding."""
    longest = int(lengths.max()) if len(lengths) else 0
    return characters[:, : longest + widest]


def greatest_over_word(ids: Tensor, lengths: Tensor, characters: Tensor, weight: Tensor) -> Tensor:
    """max over positions p of sum_j characters[ids[p + j]] @ weight[j]: (U, C), (262, E), (width, E, n) -> (U, n).

    lengths: (U,), falling. Windows that begin beyond a word's end are all alike, so the first of them speaks for all.
    """
    greatest: Tensor = _GreatestOverWord.apply(ids, lengths, characters, weight)  # type: ignore[no-untyped-call]
    return greatest


class _GreatestOverWord(torch.autograd.Function):
    """Of 262 characters, characters @ weight[j] is a small table: a window is a sum of looked-up rows, not a product.

    A value's gradient flows to one window only, so it is collected per offset and character, in that table's shape.
    """

    @staticmethod
    def forward(ctx: Any, ids: Tensor, lengths: Tensor, characters: Tensor, weight: Tensor) -> Tensor:
        width = len(weight)
        table = (characters @ weight).flatten(0, 1)  # (width * 262, n)
        offsets = torch.arange(width, device=ids.device) * N_CHARACTERS
        windows = ids.unfold(1, width, 1).transpose(0, 1) + offsets  # (positions, U, width)
        reached = (lengths >= torch.arange(len(windows), device=ids.device)[:, None]).sum(dim=1).tolist()
        greatest = F.embedding_bag(windows[0], table, mode="sum")
        needs_gradient = any(ctx.needs_input_grad)
        # Positions are kept as floats: torch compares and multiplies those an order faster than it fills by a mask.
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
        where = where.long()
        grad_table = grad.new_zeros(len(weight), N_CHARACTERS, grad.shape[1])
        for offset, grad_rows in enumerate(grad_table):
            grad_rows.scatter_add_(0, ids.gather(1, where + offset), grad)
        grad_characters = torch.einsum("wcn,wen->ce", grad_table, weight)
        grad_characters[BATCH_PADDING] = 0
        grad_weight = characters.t() @ grad_table
        return None, None, grad_characters, grad_weight
