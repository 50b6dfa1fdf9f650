"""ELMo's LSTM with a backward pass written by hand; the letters are those of `headstart.encoders.lstm`.

Autograd would record some twenty operations per step and direction, and would add to the weights' gradients at every
step. Here the states of all steps lie in a few large arrays, and each weight's gradient is one matrix product over all
steps at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headstart.cores import on_cores
from headstart.encoders.kernels.linear import multiply
from headstart.encoders.kernels.lstm_inference import Clips, infer_direction
from headstart.encoders.kernels.memory import Arena, Lease

aten = torch.ops.aten
arena = Arena()


class ProjectedLstm(torch.autograd.Function):
    """(directions, N, D) -> (directions, N, P). The directions are independent, so each runs on a core of its own."""

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
        # Without gradients no state has to be kept, and the inference kernel does less.
        if not any(ctx.needs_input_grad):
            return torch.stack(on_cores([partial(infer_direction, *mine, sizes, clips) for mine in matrices]))
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


def offsets_of(sizes: list[int]) -> list[int]:
    """Where each step's rows begin among the N, and where the last one ends."""
    offsets = [0]
    for n in sizes:
        offsets.append(offsets[-1] + n)
    return offsets


@dataclass(frozen=True, slots=True)
class States:
    """The states of one direction at every step, packed: rows are tokens."""

    x_h_1: Tensor
    """(N, D + P + 1): the input, the output of the step before, and a one for the bias."""
    gates: Tensor
    """(N, 4H): input, forget, output, candidate, after their nonlinearities."""
    c: Tensor
    tanh_c: Tensor
    m: Tensor
    """(N, H): o * tanh(c), the input of the projection."""
    h: Tensor

    lease: Lease
    """Holds all arrays but h, and returns them to the arena when the states are no longer needed."""

    @staticmethod
    def empty(like: Tensor, N: int, D: int, H: int, P: int) -> States:
        widths = {"x_h_1": D + P + 1, "gates": 4 * H, "c": H, "tanh_c": H, "m": H}
        arrays = {name: arena.take(name, N, width, like) for name, width in widths.items()}
        # h is the result and outlives the step, so it must not come from the arena.
        return States(**arrays, h=like.new_empty(N, P), lease=Lease(arena, arrays))


def run(x: Tensor, weight: Tensor, bias: Tensor, projection_weight: Tensor, sizes: list[int], clips: Clips) -> States:
    """One direction, step by step, keeping all states for the backward pass."""
    (N, D), (H, P) = x.shape, projection_weight.shape
    cell_clip, projection_clip = clips
    states = States.empty(x, N, D, H, P)
    # [x, h, 1] side by side: one product then gives the gates with their bias, and in the backward pass one product
    # over all steps gives the gradients of weight and bias. The first step has h = 0.
    states.x_h_1[:, :D] = x
    states.x_h_1[: max(sizes, default=0), D:-1] = 0
    states.x_h_1[:, -1] = 1
    # tanh(z) = 2 sigmoid(2 z) - 1, and torch's sigmoid is four times as fast as its tanh on a CPU. With the candidate's
    # columns doubled, one sigmoid serves all four gates.
    joined = torch.cat([weight, bias[None]])
    joined[:, 3 * H :] *= 2
    offsets = offsets_of(sizes)
    for t, n in enumerate(sizes):
        now = slice(offsets[t], offsets[t] + n)
        # Longest sequences come first, so the n that are still alive are the first n of the step before.
        before = slice(offsets[t - 1], offsets[t - 1] + n) if t else None
        if before is not None:
            states.x_h_1[now, D:-1] = states.h[before]
        # Every result is written into its place among all steps: nothing is allocated inside the loop.
        gates, c, tanh_c = multiply(states.x_h_1[now], joined, states.gates[now]), states.c[now], states.tanh_c[now]
        i, f, o, g = gates.sigmoid_().chunk(4, dim=-1)
        g.mul_(2).sub_(1)  # the candidate's tanh, from its doubled sigmoid
        # c = f * c + i * g, where the first step has no c before it.
        if before is None:
            torch.mul(i, g, out=c)
        else:
            torch.mul(f, states.c[before], out=c).addcmul_(i, g)
        if cell_clip is not None:
            c.clamp_(-cell_clip, cell_clip)
        torch.mul(c, 2, out=tanh_c).sigmoid_().mul_(2).sub_(1)  # tanh again by way of the sigmoid
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
    """Gradients of x, weight, bias and projection of one direction."""
    D = weight.shape[0] - projection_weight.shape[1]
    grad_gates = arena.take("gates", len(grad_h), weight.shape[1], grad_h)
    grad_h = gradients_through_time(grad_h, grad_gates, states, weight[D:], projection_weight, sizes, clips)
    # One product over all steps: the rows of [x, h, 1] give W's gradient, and its last row is the bias's.
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
    """Gradients before the projection's clip, (N, P).

    Those before the gates' nonlinearities are written into grad_gates, (N, 4H). A value on the bound counts as clipped,
    also if it reached the bound exactly.
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
        # h went to the result and, in the sequences that go on, into the gates of the next step.
        if n_later:
            later = slice(offsets[t + 1], offsets[t + 1] + n_later)
            grad_h_t[:n_later] += multiply(grad_gates[later], recurrent_weight.t())
        if projection_clip is not None:
            zero_where_clipped_(grad_h_t, states.h[now], projection_clip)
        grad_m = multiply(grad_h_t, projection_weight.t())
        i, f, o, g = states.gates[now].chunk(4, dim=-1)
        grad_i, grad_f, grad_o, grad_g = grad_gates[now].chunk(4, dim=-1)
        # The slopes of the three sigmoids, s (1 - s) = s - s * s, in one pass; the rest is multiplied onto them below.
        sigmoids = states.gates[now, : 3 * H]
        torch.addcmul(sigmoids, sigmoids, sigmoids, value=-1, out=grad_gates[now, : 3 * H])
        # m = o * tanh(c): its gradient goes to the output gate and, through the tanh, to the cell. grad_m is not
        # needed afterwards, so its memory becomes grad_c's.
        grad_o.mul_(grad_m).mul_(tanh_c)
        grad_c = grad_m.mul_(o)
        aten.tanh_backward.grad_input(grad_c, tanh_c, grad_input=grad_c)
        grad_c[:n_later] += grad_c_later
        if cell_clip is not None:
            zero_where_clipped_(grad_c, c, cell_clip)
        # c = f * c_before + i * g: its gradient goes to the input gate, the candidate, the forget gate and c_before.
        grad_i.mul_(grad_c).mul_(g)
        aten.tanh_backward.grad_input(grad_c * i, g, grad_input=grad_g)
        if t:
            grad_f.mul_(grad_c).mul_(states.c[offsets[t - 1] : offsets[t - 1] + n])
            grad_c_later = grad_c.mul_(f)
        else:
            grad_f.zero_()  # there is no cell before the first step
    return grad_h


def zero_where_clipped_(grad: Tensor, clipped: Tensor, bound: float) -> None:
    """In place, by the kernel of hardtanh's gradient: one pass, no mask."""
    aten.hardtanh_backward.grad_input(grad, clipped, -bound, bound, grad_input=grad)
