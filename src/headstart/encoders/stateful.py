"""An LSTM whose state is carried from batch to batch, as in the original ELMo: row i continues row i of the one before.

Headstart's own vectors of a sentence depend on that sentence alone; this is for comparison with published outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headstart.encoders.lstm import LstmLayer


@dataclass(frozen=True, slots=True)
class LstmState:
    """The state of every layer and direction after each row's last token. h: (L, directions, B, P); c: (.., B, H)."""

    h: Tensor
    c: Tensor

    @classmethod
    def empty(cls, layers: int, directions: int, projection: int, cells: int, like: Tensor) -> LstmState:
        """The state before anything was read: it has no rows, and a missing row counts as zero. like: a parameter."""
        shape = (layers, directions, 0)
        return cls(like.new_zeros(*shape, projection), like.new_zeros(*shape, cells))

    def of_rows(self, n: int) -> LstmState:
        """A copy with at least n rows; those that were missing are zero."""
        missing = max(n - self.h.shape[2], 0)
        h, c = (
            torch.cat([state, state.new_zeros(*state.shape[:2], missing, state.shape[3])], dim=2)
            for state in (self.h, self.c)
        )
        return LstmState(h, c)


def run_from(layer: LstmLayer, x: Tensor, sizes: list[int], h: Tensor, c: Tensor) -> Tensor:
    """One layer over packed tokens, (directions, N, D) -> (directions, N, P), from the state h, c on.

    h: (directions, n, P) and c: (directions, n, H) are updated in place. Sequences are in the packing's order: those
    that end first come last, so what is left in a row is the state at its own last token.
    """
    # The products with x depend on no earlier step, so one matrix product serves all steps.
    gates = x.bmm(layer.input_weight)
    outputs = []
    offset = 0
    for n in sizes:
        step = torch.baddbmm(gates[:, offset : offset + n], h[:, :n], layer.recurrent_weight) + layer.bias[:, None]
        i, f, o, g = step.chunk(4, dim=-1)
        c[:, :n] = clipped(f.sigmoid() * c[:, :n] + i.sigmoid() * g.tanh(), layer.cell_clip)
        h[:, :n] = clipped((o.sigmoid() * c[:, :n].tanh()).bmm(layer.projection_weight), layer.projection_clip)
        outputs.append(h[:, :n].clone())
        offset += n
    return torch.cat(outputs, dim=1)


def clipped(x: Tensor, bound: float | None) -> Tensor:
    return x if bound is None else x.clamp(-bound, bound)
