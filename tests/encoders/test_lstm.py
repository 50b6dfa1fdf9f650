import pytest
import torch
from torch import Tensor

from headstart.encoders.kernels.packing import Packing
from headstart.encoders.lstm import LstmLayer

LENGTHS = [4, 6, 2, 6]


def clip(x: Tensor, bound: float | None) -> Tensor:
    return x if bound is None else x.clamp(-bound, bound)


def plain_lstm(x: Tensor, lengths: list[int], layer: LstmLayer) -> Tensor:
    """The equations, one token at a time under autograd. x: (B, T, D) -> (B, T, directions * P)."""
    directions, _, P = layer.projection_weight.shape
    out = [[[x.new_zeros(P) for _ in range(directions)] for _ in range(x.shape[1])] for _ in lengths]
    for direction in range(directions):
        for b, length in enumerate(lengths):
            h, c = x.new_zeros(P), x.new_zeros(layer.cells)
            for t in range(length) if direction == 0 else reversed(range(length)):
                z = x[b, t] @ layer.input_weight[direction] + h @ layer.recurrent_weight[direction]
                i, f, o, g = (z + layer.bias[direction]).chunk(4)
                c = clip(f.sigmoid() * c + i.sigmoid() * g.tanh(), layer.cell_clip)
                h = clip((o.sigmoid() * c.tanh()) @ layer.projection_weight[direction], layer.projection_clip)
                out[b][t][direction] = h
    return torch.stack([torch.stack([torch.cat(token) for token in row]) for row in out])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("clips", [(0.3, 0.2), (3.0, 3.0), (None, None)])
def test_outputs_and_every_gradient_agree_with_the_plain_loop(
    dtype: torch.dtype, directions: int, clips: tuple[float | None, float | None]
) -> None:
    torch.manual_seed(0)
    layer = LstmLayer(3, 5, 4, directions, *clips).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(2)
    x = torch.randn(len(LENGTHS), 7, 3, dtype=dtype, requires_grad=True)
    mask = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
    packing = Packing.of(mask, directions)

    quick = packing.unpack(layer(packing.pack(x), packing.sizes))
    plain = plain_lstm(x, LENGTHS, layer)
    if clips[1] == 0.2:
        share = (plain[mask].abs() == 0.2).double().mean()
        assert 0.1 < share < 0.9, "the clip is not exercised"
    tolerance = 1e-5 if dtype is torch.float32 else 1e-12
    torch.testing.assert_close(quick, plain, atol=tolerance, rtol=tolerance)

    weights = torch.randn_like(plain)
    inputs = [x, *layer.parameters()]
    ours = torch.autograd.grad((quick * weights).sum(), inputs)
    theirs = torch.autograd.grad((plain * weights).sum(), inputs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


def test_one_step_by_hand() -> None:
    layer = LstmLayer(1, 1, 1, 1, cell_clip=3.0, projection_clip=3.0)
    with torch.no_grad():
        layer.weight.copy_(
            torch.tensor([[[0.0, 0.0, 0.0, 20.0], [0.0, 0.0, 0.0, 0.0]]])
        )  # open gates by half, candidate 1
        layer.projection_weight.fill_(100.0)
    h = layer(torch.ones(1, 1, 1), [1])
    assert h.item() == 3.0  # 100 * 0.5 * tanh(0.5) is clipped
    with torch.no_grad():
        layer.projection_weight.fill_(2.0)
    expected = 2 * 0.5 * torch.tanh(torch.tensor(0.5)).item()
    assert layer(torch.ones(1, 1, 1), [1]).item() == pytest.approx(expected, abs=1e-6)


def test_the_forget_gate_starts_open_by_its_bias() -> None:
    layer = LstmLayer(2, 3, 2, 2, None, None)
    assert layer.bias.view(2, 4, 3)[:, 1].eq(1).all()
    assert layer.bias.sum() == 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clips", [(0.3, 0.2), (3.0, 3.0), (None, None)])
def test_without_a_gradient_the_outputs_are_the_same(
    dtype: torch.dtype, clips: tuple[float | None, float | None]
) -> None:
    torch.manual_seed(0)
    layer = LstmLayer(3, 5, 4, 2, *clips).to(dtype)
    lengths = [*LENGTHS, 7, 7, 5]  # 7 rows at first: no multiple of what is multiplied together
    x = 2 * torch.randn(len(lengths), 7, 3, dtype=dtype)
    packing = Packing.of(torch.arange(7) < torch.tensor(lengths)[:, None], 2)
    tolerance = 1e-5 if dtype is torch.float32 else 1e-12
    expected = layer(packing.pack(x), packing.sizes)
    with torch.no_grad():
        found = layer(packing.pack(x), packing.sizes)
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
