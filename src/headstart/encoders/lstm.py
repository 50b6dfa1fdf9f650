"""ELMo's LSTM layer: a projected LSTM with clipped cells, all directions in one batched step, gradients by hand.

Letters: N packed tokens, n sequences alive at a step, D input width, H cells, P projection. For each direction and step

    i, f, o = sigmoid([x, h] W + b),  g = tanh([x, h] W + b)
    c = clip(f * c + i * g),          h = clip((o * tanh(c)) V)

as TensorFlow's LSTMCell with num_proj, cell_clip and proj_clip. The state is zero before every sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from headstart.cores import on_cores
from headstart.encoders.linear import multiply
from headstart.encoders.lstm_in_use import Clips, run_in_use
from headstart.encoders.memory import Arena, Lease

aten = torch.ops.aten
arena = Arena()

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

    def in_use(self, x: Tensor, direction: int, sizes: list[int], before: list[Tensor | None]) -> Tensor:
        """One direction, of which no gradient is wanted: (N, D) -> (N, P). before: see `run_in_use`."""
        weights = self.weight[direction], self.bias[direction], self.projection_weight[direction]
        return run_in_use(x, *weights, sizes, (self.cell_clip, self.projection_clip), before)


def offsets_of(sizes: list[int]) -> list[int]:
    offsets = [0]
    for n in sizes:
        offsets.append(offsets[-1] + n)
    return offsets


class _ProjectedLstm(torch.autograd.Function):
    """Each direction on a core of its own."""

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
        clips = cell_clip, projection_clip
        matrices = zip(x, weight, bias, projection_weight, strict=True)
        if not any(ctx.needs_input_grad):
            return torch.stack(on_cores([partial(run_in_use, *mine, sizes, clips) for mine in matrices]))
        states = on_cores([partial(run, *mine, sizes, clips) for mine in matrices])
        ctx.save_for_backward(weight, projection_weight)
        ctx.states, ctx.sizes, ctx.clips = states, sizes, clips
        return torch.stack([state.h for state in states])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor) -> tuple[Tensor | None, ...]:
        weight, projection_weight = ctx.saved_tensors
        matrices = zip(grad_h, weight, projection_weight, ctx.states, strict=True)
        needs_x = ctx.needs_input_grad[0]
        found = on_cores([partial(run_back, *mine, ctx.sizes, ctx.clips, needs_x) for mine in matrices])
        grad_x, grad_weight, grad_bias, grad_projection = zip(*found, strict=True)
        return (
            torch.stack(grad_x) if needs_x else None,
            torch.stack(grad_weight),
            torch.stack(grad_bias),
            torch.stack(grad_projection),
            None,
            None,
            None,
        )


@dataclass(frozen=True, slots=True)
class States:
    """What one direction went through, packed: rows are tokens."""

    x_h_1: Tensor
    """(N, D + P + 1): the input, the output of the step before, and a one for the bias."""
    gates: Tensor
    """(N, 4H): input, forget, output, candidate, after their nonlinearities."""
    c: Tensor
    tanh_c: Tensor
    m: Tensor
    """(N, H): what the projection reads."""
    h: Tensor

    lease: Lease
    """Where all but h was taken from, and returns to when the states are no longer needed."""

    @staticmethod
    def empty(like: Tensor, N: int, D: int, H: int, P: int) -> States:
        widths = {"x_h_1": D + P + 1, "gates": 4 * H, "c": H, "tanh_c": H, "m": H}
        arrays = {name: arena.take(name, N, width, like) for name, width in widths.items()}
        return States(**arrays, h=like.new_empty(N, P), lease=Lease(arena, arrays))


def run(x: Tensor, weight: Tensor, bias: Tensor, projection_weight: Tensor, sizes: list[int], clips: Clips) -> States:
    """One direction, step by step, keeping all states for the way back."""
    (N, D), (H, P) = x.shape, projection_weight.shape
    cell_clip, projection_clip = clips
    states = States.empty(x, N, D, H, P)
    states.x_h_1[:, :D] = x
    states.x_h_1[: max(sizes, default=0), D:-1] = 0
    states.x_h_1[:, -1] = 1
    # tanh(z) = 2 sigmoid(2 z) - 1, and torch's sigmoid is four times quicker than its tanh on a CPU. With the part of
    # the candidate doubled one sigmoid serves all gates.
    joined = torch.cat([weight, bias[None]])
    joined[:, 3 * H :] *= 2
    offsets = offsets_of(sizes)
    for t, n in enumerate(sizes):
        now = slice(offsets[t], offsets[t] + n)
        before = slice(offsets[t - 1], offsets[t - 1] + n) if t else None
        if before is not None:
            states.x_h_1[now, D:-1] = states.h[before]
        gates, c, tanh_c = multiply(states.x_h_1[now], joined, states.gates[now]), states.c[now], states.tanh_c[now]
        i, f, o, g = gates.sigmoid_().chunk(4, dim=-1)
        g.mul_(2).sub_(1)
        if before is None:
            torch.mul(i, g, out=c)
        else:
            torch.mul(f, states.c[before], out=c).addcmul_(i, g)
        if cell_clip is not None:
            c.clamp_(-cell_clip, cell_clip)
        torch.mul(c, 2, out=tanh_c).sigmoid_().mul_(2).sub_(1)
        torch.mul(o, tanh_c, out=states.m[now])
        h = multiply(states.m[now], projection_weight, states.h[now])
        if projection_clip is not None:
            h.clamp_(-projection_clip, projection_clip)
    return states


def run_back(
    grad_h: Tensor,
    weight: Tensor,
    projection_weight: Tensor,
    states: States,
    sizes: list[int],
    clips: Clips,
    needs_x: bool,
) -> tuple[Tensor | None, Tensor, Tensor, Tensor]:
    """Gradients of x, weight, bias and projection of one direction; those of weights are one product over all steps."""
    D = weight.shape[0] - projection_weight.shape[1]
    grad_gates = arena.take("gates", len(grad_h), weight.shape[1], grad_h)
    grad_h = gradients_through_time(grad_h, grad_gates, states, weight[D:], projection_weight, sizes, clips)
    grad_joined = multiply(states.x_h_1.t(), grad_gates)
    grad_x = multiply(grad_gates, weight[:D].t()) if needs_x else None
    arena.give("gates", grad_gates)
    return grad_x, grad_joined[:-1], grad_joined[-1], multiply(states.m.t(), grad_h)


def gradients_through_time(
    grad_h: Tensor,
    grad_gates: Tensor,
    states: States,
    recurrent_weight: Tensor,
    projection_weight: Tensor,
    sizes: list[int],
    clips: Clips,
) -> Tensor:
    """Gradients before the projection's clip, (N, P), and into grad_gates, (N, 4H), those before the gates' own.

    A clipped value is told by lying on the bound, so a value that reaches the bound exactly counts as clipped.
    """
    cell_clip, projection_clip = clips
    H = states.c.shape[-1]
    grad_h = grad_h.clone(memory_format=torch.contiguous_format)
    grad_c_later = states.c.new_zeros(0, H)
    offsets = offsets_of(sizes)
    for t in reversed(range(len(sizes))):
        n, n_later = sizes[t], len(grad_c_later)
        now = slice(offsets[t], offsets[t] + n)
        grad_h_t, c, tanh_c = grad_h[now], states.c[now], states.tanh_c[now]
        if n_later:
            later = slice(offsets[t + 1], offsets[t + 1] + n_later)
            grad_h_t[:n_later] += multiply(grad_gates[later], recurrent_weight.t())
        if projection_clip is not None:
            keep_inside_(grad_h_t, states.h[now], projection_clip)
        grad_m = multiply(grad_h_t, projection_weight.t())
        i, f, o, g = states.gates[now].chunk(4, dim=-1)
        grad_i, grad_f, grad_o, grad_g = grad_gates[now].chunk(4, dim=-1)
        # Start from the slopes of the three sigmoids, s (1 - s), and multiply the rest onto them.
        sigmoids = states.gates[now, : 3 * H]
        torch.addcmul(sigmoids, sigmoids, sigmoids, value=-1, out=grad_gates[now, : 3 * H])
        grad_o.mul_(grad_m).mul_(tanh_c)
        grad_c = grad_m.mul_(o)
        aten.tanh_backward.grad_input(grad_c, tanh_c, grad_input=grad_c)
        grad_c[:n_later] += grad_c_later
        if cell_clip is not None:
            keep_inside_(grad_c, c, cell_clip)
        grad_i.mul_(grad_c).mul_(g)
        aten.tanh_backward.grad_input(grad_c * i, g, grad_input=grad_g)
        if t:
            grad_f.mul_(grad_c).mul_(states.c[offsets[t - 1] : offsets[t - 1] + n])
            grad_c_later = grad_c.mul_(f)
        else:
            grad_f.zero_()
    return grad_h


def keep_inside_(grad: Tensor, clipped: Tensor, bound: float) -> None:
    """Zero a gradient where its value was clipped, in place."""
    aten.hardtanh_backward.grad_input(grad, clipped, -bound, bound, grad_input=grad)
