"""One direction of ELMo's LSTM without gradients: the values of `lstm_training.run`, but only one step is in memory.

The kernel keeps 2c where the formula has c: tanh(c) = 2 sigmoid(2c) - 1, and torch's sigmoid is four times as fast as
its tanh on a CPU. Multiplying by 2 is exact in floating point, so the factors move into the weights, where they cost
nothing per step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headstart.encoders.kernels.linear import multiply
from headstart.encoders.kernels.memory import Arena, Lease

Clips = tuple[float | None, float | None]
"""Bounds on the cells and on the outputs."""

arena = Arena()

ROWS_TOGETHER = 4
"""OpenBLAS multiplies rows in fours: a product with 47 rows was measured to take a fifth longer than one with 48."""


def infer_direction(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    projection_weight: Tensor,
    sizes: list[int],
    clips: Clips,
    parents: list[Tensor | None] | None = None,
) -> Tensor:
    """(N, D) -> (N, P). The rows of the first step are x[:sizes[0]], those of the next the sizes[1] rows after them.

    parents: for each step, the rows of the step before that its rows continue; None: the first ones, in order.
    """
    (N, D), (H, P) = x.shape, projection_weight.shape
    cell_clip, projection_clip = clips
    # All steps share arrays of the largest step's size. [x, h, 1] side by side makes the gates and their bias one
    # product. Rows beyond a step's last are multiplied too (see ROWS_TOGETHER); their values do not matter, but they
    # must be ordinary numbers: what freshly allocated memory holds may be denormal, and arithmetic on that is slow.
    room = whole_fours(max(sizes, default=0))
    widths = {"x_h_1": D + P + 1, "gates": 4 * H, "c": H, "m": H}
    lease = Lease(arena, {name: arena.take(name, room, width, x) for name, width in widths.items()})
    x_h_1, gates, c, m = (lease.arrays[name] for name in widths)
    x_h_1.zero_()[:, -1] = 1
    c.zero_()
    m.zero_()
    # The candidate's columns are doubled, so that one sigmoid serves all gates; the projection is doubled because m
    # below is half of o * tanh(c).
    joined = torch.cat([weight, bias[None]])
    joined[:, 3 * H :] *= 2
    doubled = 2 * projection_weight
    # The last step also writes its rows in fours, so the result needs that much more room.
    outputs = x.new_empty(N + ROWS_TOGETHER, P)
    start = earlier = 0
    for t, n in enumerate(sizes):
        rows, x_h_1_n, c_n, m_n = whole_fours(n), x_h_1[:n], c[:n], m[:n]
        of_step = None if parents is None else parents[t]
        if t:
            h = outputs[earlier:start]
            x_h_1_n[:, D:-1] = h[:n] if of_step is None else h[of_step]
        x_h_1_n[:, :D] = x[start : start + n]
        multiply(x_h_1[:rows], joined, gates[:rows])
        # sigmoid(2z) - 1/2 is half of the candidate's tanh(z), hence 2c = f * 2c + 4 * i * half_g.
        i, f, o, half_g = gates[:n].sigmoid_().chunk(4, dim=-1)
        half_g.sub_(0.5)
        torch.mul(f, c_n if of_step is None else c[of_step], out=c_n).addcmul_(i, half_g, value=4)
        if cell_clip is not None:
            c_n.clamp_(-2 * cell_clip, 2 * cell_clip)
        # sigmoid(2c) - 1/2 is half of tanh(c); the doubled projection makes up for it.
        torch.sigmoid(c_n, out=m_n).sub_(0.5).mul_(o)
        multiply(m[:rows], doubled, outputs[start : start + rows])
        if projection_clip is not None:
            outputs[start : start + n].clamp_(-projection_clip, projection_clip)
        earlier, start = start, start + n
    return outputs[:N]


def whole_fours(rows: int) -> int:
    return -(-rows // ROWS_TOGETHER) * ROWS_TOGETHER
