"""One direction of ELMo's LSTM as it runs when no gradient is wanted: the values of `headstart.encoders.lstm.run`, with
every step written over the last.

Twice the cells are kept instead of the cells: tanh(c) = 2 sigmoid(2 c) - 1, and torch's sigmoid is four times quicker
than its tanh on a CPU. Halves and doubles are exact, and cost less than a pass over the array: they are in the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headstart.encoders.linear import multiply
from headstart.encoders.memory import Arena, Lease

Clips = tuple[float | None, float | None]
"""Bounds on the cells and on the outputs."""

arena = Arena()

ROWS_TOGETHER = 4
"""OpenBLAS multiplies rows by fours: 47 take a fifth longer than 48."""


def run_in_use(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    projection_weight: Tensor,
    sizes: list[int],
    clips: Clips,
    before: list[Tensor | None] | None = None,
) -> Tensor:
    """(N, D) -> (N, P). The first two steps' rows are x[:sizes[0]] and x[sizes[0]:][:sizes[1]], and so on.

    before: for each step, which rows of the step before its rows go on from; None: the first ones.
    """
    (N, D), (H, P) = x.shape, projection_weight.shape
    cell_clip, projection_clip = clips
    room = whole_fours(max(sizes, default=0))
    widths = {"x_h_1": D + P + 1, "gates": 4 * H, "c": H, "m": H}
    lease = Lease(arena, {name: arena.take(name, room, width, x) for name, width in widths.items()})
    x_h_1, gates, c, m = (lease.arrays[name] for name in widths)
    x_h_1.zero_()[:, -1] = 1
    c.zero_()
    m.zero_()  # what rows beyond the last hold does not matter, but numbers out of range are slow
    joined = torch.cat([weight, bias[None]])
    joined[:, 3 * H :] *= 2
    doubled = 2 * projection_weight
    outputs = x.new_empty(N + ROWS_TOGETHER, P)
    start = earlier = 0
    for t, n in enumerate(sizes):
        rows, x_h_1_n, c_n, m_n = whole_fours(n), x_h_1[:n], c[:n], m[:n]
        parents = None if before is None else before[t]
        if t:
            h = outputs[earlier:start]
            x_h_1_n[:, D:-1] = h[:n] if parents is None else h[parents]
        x_h_1_n[:, :D] = x[start : start + n]
        multiply(x_h_1[:rows], joined, gates[:rows])
        i, f, o, half_g = gates[:n].sigmoid_().chunk(4, dim=-1)
        half_g.sub_(0.5)
        torch.mul(f, c_n if parents is None else c[parents], out=c_n).addcmul_(i, half_g, value=4)
        if cell_clip is not None:
            c_n.clamp_(-2 * cell_clip, 2 * cell_clip)
        torch.sigmoid(c_n, out=m_n).sub_(0.5).mul_(o)
        multiply(m[:rows], doubled, outputs[start : start + rows])
        if projection_clip is not None:
            outputs[start : start + n].clamp_(-projection_clip, projection_clip)
        earlier, start = start, start + n
    return outputs[:N]


def whole_fours(rows: int) -> int:
    return -(-rows // ROWS_TOGETHER) * ROWS_TOGETHER
