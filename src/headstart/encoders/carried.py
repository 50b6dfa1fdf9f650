"""ELMo whose LSTM goes on from batch to batch, as the original: row i continues row i of the batch before.

Headstart's own vectors of a sentence depend on that sentence alone; this is for comparison with published outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from headstart.encoders.elmo import Elmo
from headstart.encoders.lstm import LstmLayer
from headstart.encoders.packing import Packing


@dataclass(frozen=True, slots=True)
class Carried:
    """What every layer and direction knew after each row's last token. h: (L, directions, B, P); c: (.., B, H)."""

    h: Tensor
    c: Tensor

    @classmethod
    def nothing(cls, elmo: Elmo) -> Carried:
        """The state before anything was read: no rows, and a row that is not there is zero."""
        config, example = elmo.config, elmo.characters.characters
        no_rows = (config.layers, elmo.directions, 0)
        return cls(example.new_zeros(*no_rows, config.projection), example.new_zeros(*no_rows, config.cell))

    def of_rows(self, n: int) -> Carried:
        """A copy with at least n rows; those that were missing are zero."""
        missing = max(n - self.h.shape[2], 0)
        h, c = (
            torch.cat([state, state.new_zeros(*state.shape[:2], missing, state.shape[3])], dim=2)
            for state in (self.h, self.c)
        )
        return Carried(h, c)


@torch.no_grad()
def carried_states(elmo: Elmo, ids: Tensor, mask: Tensor, before: Carried | None) -> tuple[list[Tensor], Carried]:
    """R_0 .. R_L as `Elmo.hidden_states` without dropout, from the states `before` on, and the states after.

    before: None is zero everywhere. Rows that this batch does not have keep their state; new rows start from zero. The
    backward direction reads each row from its own last token, from the state that it had after the first one before.
    """
    after = (before or Carried.nothing(elmo)).of_rows(len(ids))
    with torch.autocast(ids.device.type, enabled=False):
        words = elmo.characters(ids) * mask[..., None]
        packing = Packing.of(mask, elmo.directions)
        rows = packing.index[0, : packing.sizes[0]] // mask.shape[1]
        x = packing.pack(words)
        states = [words.repeat(1, 1, elmo.directions)]
        for depth, layer in enumerate(elmo.layers):
            h, c = after.h[depth][:, rows], after.c[depth][:, rows]
            y = run_on(cast("LstmLayer", layer), x, packing.sizes, h, c)
            after.h[depth][:, rows], after.c[depth][:, rows] = h, c
            x = x + y if depth and elmo.config.residual else y
            states.append(packing.unpack(x))
    return states, after


def run_on(layer: LstmLayer, x: Tensor, sizes: list[int], h: Tensor, c: Tensor) -> Tensor:
    """One layer over packed tokens, (directions, N, D) -> (directions, N, P), from h and c on, which it brings forward.

    h: (directions, n, P), c: (directions, n, H), sequences in the packing's order: those that end first come last, so
    what is left in a row is the state at its own last token.
    """
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
