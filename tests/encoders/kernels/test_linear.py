import pytest
import torch
from torch import nn

from headstart.cores import on_cores
from headstart.encoders.kernels.linear import Linear, multiply

pytestmark = pytest.mark.usefixtures("two_threads")


def alone(work):
    """Call it on a thread that has a core to itself."""
    return on_cores([work, lambda: None])[0]


def test_values_and_gradients_are_those_of_torch() -> None:
    torch.manual_seed(0)
    ours = Linear(7, 5)
    theirs = nn.Linear(7, 5)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 7)
    weights = torch.randn(2, 3, 5)

    def outputs_and_gradients(layer: nn.Linear) -> list[torch.Tensor]:
        mine = x.clone().requires_grad_()
        y = layer(mine)
        return [y, *torch.autograd.grad((y * weights).sum(), [mine, layer.weight, layer.bias])]

    found = alone(lambda: outputs_and_gradients(ours))
    assert "_Product" in str(found[0].grad_fn.next_functions) + str(found[0].grad_fn), "numpy's product was not used"
    for a, b in zip(found, outputs_and_gradients(theirs), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_only_the_gradients_that_are_wanted_are_computed() -> None:
    layer = Linear(4, 3, bias=False).requires_grad_(False)
    x = torch.randn(2, 4, requires_grad=True)
    (gradient,) = alone(lambda: torch.autograd.grad(layer(x).sum(), [x]))
    torch.testing.assert_close(gradient, layer.weight.sum(0).expand(2, 4))
    assert not alone(lambda: layer(x.detach())).requires_grad


def test_other_types_are_left_to_torch() -> None:
    layer = Linear(4, 3).double()
    x = torch.randn(2, 4, dtype=torch.float64)
    torch.testing.assert_close(alone(lambda: layer(x)), nn.functional.linear(x, layer.weight, layer.bias))


def test_multiply_writes_where_it_is_told() -> None:
    a, b, out = torch.randn(3, 4), torch.randn(5, 4), torch.zeros(6, 5)
    for run in (alone, lambda work: work()):
        out.zero_()
        run(lambda: multiply(a, b.t(), out[1:4]))
        torch.testing.assert_close(out[1:4], a @ b.t())
        assert not out[0].any()
        assert not out[4:].any()
