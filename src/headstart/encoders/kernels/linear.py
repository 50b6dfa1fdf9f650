"""x W^T + b, computed by torch or by numpy, whichever is faster where it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from headstart.cores import alone


class Linear(nn.Linear):
    """nn.Linear that multiplies with numpy on a thread that has a core to itself (see `headstart.cores.alone`)."""

    def forward(self, x: Tensor) -> Tensor:
        if not alone() or x.device.type != "cpu" or x.dtype != torch.float32 or self.weight.dtype != torch.float32:
            return super().forward(x)
        product: Tensor = _Product.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return product


def multiply(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """a @ b without gradients."""
    if out is None:
        out = a.new_empty(a.shape[0], b.shape[1])
    # On one core numpy's BLAS is faster than torch's; with torch's own threads around, the two compete for the cores.
    if alone() and a.device.type == "cpu":
        np.matmul(a.detach().numpy(), b.detach().numpy(), out=out.detach().numpy())
        return out
    with torch.no_grad():
        return torch.mm(a, b, out=out)


class _Product(torch.autograd.Function):
    """x W^T + b by `multiply`, forward and backward: autograd knows nothing of numpy's products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        ctx.save_for_backward(rows, weight)
        ctx.has_bias = bias is not None
        y = multiply(rows, weight.t())
        if bias is not None:
            y += bias
        return y.view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        grad_rows = grad.reshape(-1, grad.shape[-1])
        needs_x, needs_weight, _ = ctx.needs_input_grad
        # Each product is made only if somebody asks for it: the lowest layer's input often needs none.
        grad_x = multiply(grad_rows, weight).view(*grad.shape[:-1], -1) if needs_x else None
        grad_weight = multiply(grad_rows.t(), rows) if needs_weight else None
        return grad_x, grad_weight, grad_rows.sum(0) if ctx.has_bias else None
