"""ELMo's LSTM layer: a projected LSTM with clipped cells, all directions in one batched step, gradients by hand.

Letters: N packed tokens, n sequences alive at a step, D input width, H cells, P projection. For each direction and step

    i, f, o = sigmoid([x, h] W + b),  g = tanh([x, h] W + b)
    c = clip(f * c + i * g),          h = clip((o * tanh(c)) V)

as TensorFlow's LSTMCell with num_proj, cell_clip and proj_clip. The state is zero before every sequence.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

aten = torch.ops.aten

FORGET_BIAS = 1.0


class LstmLayer(nn.Module):
    """One layer over packed tokens, (directions, N, D) -> (directions, N, P); the directions share no parameter.

    Gates lie side by side in the order input, forget, output, candidate. TensorFlow adds the forget bias of 1 when the
    cell runs; here it is part of `bias`, so a bias read from a published file needs 1 added to its forget part.
    """

    def __init__(
        self,
        inputs: int,
        cells: int,
        projection: int,
        directions: int,
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> None:
        super().__init__()
        self.cells = cells
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.weight = nn.Parameter(torch.empty(directions, inputs + projection, 4 * cells))
        self.bias = nn.Parameter(torch.empty(directions, 4 * cells))
        self.projection_weight = nn.Parameter(torch.empty(directions, cells, projection))
        self.initialise()

    def initialise(self) -> None:
        """Glorot's uniform for W and V, as TensorFlow's default."""
        for matrix in (self.weight, self.projection_weight):
            bound = (6 / (matrix.shape[1] + matrix.shape[2])) ** 0.5
            nn.init.uniform_(matrix, -bound, bound)
        nn.init.zeros_(self.bias)
        with torch.no_grad():
            self.bias[:, self.cells : 2 * self.cells] = FORGET_BIAS

    @property
    def input_weight(self) -> Tensor:
        """The rows of W that meet x, (directions, D, 4H)."""
        return self.weight[:, : -self.projection_weight.shape[-1]]

    @property
    def recurrent_weight(self) -> Tensor:
        """The rows of W that meet h, (directions, P, 4H)."""
        return self.weight[:, -self.projection_weight.shape[-1] :]

    def forward(self, x: Tensor, sizes: list[int]) -> Tensor:
        """sizes: sequences alive at each step, as `Packing` orders them; they sum to N."""
        h: Tensor = _ProjectedLstm.apply(  # type: ignore[no-untyped-call]
            x,
            self.weight,
            self.bias,
            self.projection_weight,
            sizes,
            self.cell_clip,
            self.projection_clip,
        )
        return h


def offsets_of(sizes: list[int]) -> list[int]:
    offsets = [0]
    for n in sizes:
        offsets.append(offsets[-1] + n)
    return offsets


def tanh_into(out: Tensor, x: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2x) - 1: torch's sigmoid is four times quicker than its tanh on a CPU."""
    return torch.mul(x, 2, out=out).sigmoid_().mul_(2).sub_(1)


class _ProjectedLstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        projection_weight: Tensor,
        sizes: list[int],
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> Tensor:
        directions, N, D = x.shape
        _, H, P = projection_weight.shape
        gates = x.bmm(weight[:, :D])
        c, tanh_c, m = (x.new_empty(directions, N, H) for _ in range(3))
        h = x.new_empty(directions, N, P)
        offsets = offsets_of(sizes)
        for t, n in enumerate(sizes):
            now = slice(offsets[t], offsets[t] + n)
            gates_t, c_t, h_t = gates[:, now], c[:, now], h[:, now]
            if t:
                before = slice(offsets[t - 1], offsets[t - 1] + n)
                gates_t.baddbmm_(h[:, before], weight[:, D:])
            gates_t += bias[:, None]  # here, where the step's gates are at hand, rather than in a pass of its own
            # One sigmoid serves all four gates, as in `tanh_into`.
            gates_t[..., 3 * H :].mul_(2)
            i, f, o, g = gates_t.sigmoid_().chunk(4, dim=-1)
            g.mul_(2).sub_(1)
            torch.mul(i, g, out=c_t)
            if t:
                c_t.addcmul_(f, c[:, before])
            if cell_clip is not None:
                c_t.clamp_(-cell_clip, cell_clip)
            torch.mul(o, tanh_into(tanh_c[:, now], c_t), out=m[:, now])
            torch.bmm(m[:, now], projection_weight, out=h_t)
            if projection_clip is not None:
                h_t.clamp_(-projection_clip, projection_clip)
        ctx.save_for_backward(x, weight, projection_weight, h)
        ctx.kept = (gates, c, tanh_c, m)
        ctx.sizes, ctx.clips = sizes, (cell_clip, projection_clip)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, projection_weight, h = ctx.saved_tensors
        D = x.shape[-1]
        grad_gates, grad_h = gradients_through_time(
            grad_h, h, ctx.kept, weight[:, D:], projection_weight, ctx.sizes, ctx.clips
        )
        _, _, _, m = ctx.kept
        x_and_h = torch.cat([x, rows_one_step_before(h, ctx.sizes)], dim=-1)
        grad_x = grad_gates.bmm(weight[:, :D].mT) if ctx.needs_input_grad[0] else None
        grad_weight = x_and_h.mT.bmm(grad_gates)
        return grad_x, grad_weight, grad_gates.sum(dim=1), m.mT.bmm(grad_h), None, None, None


def rows_one_step_before(h: Tensor, sizes: list[int]) -> Tensor:
    """For every row, the same sequence's row of the step before; zeros at the first step."""
    offsets = offsets_of(sizes)
    start = torch.zeros_like(h[:, : offsets[1]]) if sizes else h
    return torch.cat(
        [start, *(h[:, offset : offset + n] for offset, n in zip(offsets, sizes[1:], strict=False))], dim=1
    )


def gradients_through_time(
    grad_h: Tensor,
    h: Tensor,
    kept: tuple[Tensor, Tensor, Tensor, Tensor],
    recurrent_weight: Tensor,
    projection_weight: Tensor,
    sizes: list[int],
    clips: tuple[float | None, float | None],
) -> tuple[Tensor, Tensor]:
    """Gradients before the gates' nonlinearities, (directions, N, 4H), and before the projection's clip, (.., N, P).

    A clipped value is told by lying on the bound, so a value that reaches the bound exactly counts as clipped.
    """
    gates, c, tanh_c, _ = kept
    cell_clip, projection_clip = clips
    H = c.shape[-1]
    grad_h = grad_h.clone(memory_format=torch.contiguous_format)
    grad_gates = torch.empty_like(gates)
    grad_c_later = c.new_zeros(len(c), 0, H)
    offsets = offsets_of(sizes)
    for t in reversed(range(len(sizes))):
        n = sizes[t]
        now = slice(offsets[t], offsets[t] + n)
        i, f, o, g = gates[:, now].chunk(4, dim=-1)
        grad_i, grad_f, grad_o, grad_g = grad_gates[:, now].chunk(4, dim=-1)
        grad_h_t = grad_h[:, now]
        n_later = grad_c_later.shape[1]
        if n_later:
            later = slice(offsets[t + 1], offsets[t + 1] + n_later)
            grad_h_t[:, :n_later].baddbmm_(grad_gates[:, later], recurrent_weight.mT)
        if projection_clip is not None:
            keep_inside_(grad_h_t, h[:, now], projection_clip)
        grad_m = grad_h_t.bmm(projection_weight.mT)
        # Start from the slopes of the three sigmoids, s (1 - s), and multiply the rest onto them.
        sigmoids = gates[:, now, : 3 * H]
        torch.addcmul(sigmoids, sigmoids, sigmoids, value=-1, out=grad_gates[:, now, : 3 * H])
        grad_o.mul_(grad_m).mul_(tanh_c[:, now])
        grad_c = grad_m.mul_(o)
        aten.tanh_backward.grad_input(grad_c, tanh_c[:, now], grad_input=grad_c)
        grad_c[:, :n_later] += grad_c_later
        if cell_clip is not None:
            keep_inside_(grad_c, c[:, now], cell_clip)
        grad_i.mul_(grad_c).mul_(g)
        aten.tanh_backward.grad_input(grad_c * i, g, grad_input=grad_g)
        if t:
            before = slice(offsets[t - 1], offsets[t - 1] + n)
            grad_f.mul_(grad_c).mul_(c[:, before])
            grad_c_later = grad_c.mul_(f)
        else:
            grad_f.zero_()
    return grad_gates, grad_h


def keep_inside_(grad: Tensor, clipped: Tensor, bound: float) -> None:
    """Zero a gradient where its value was clipped, in place."""
    aten.hardtanh_backward.grad_input(grad, clipped, -bound, bound, grad_input=grad)
