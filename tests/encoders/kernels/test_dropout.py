import pytest
import torch

from headstart.encoders.kernels.dropout import Dropout, drawing_from


def test_drops_the_asked_share_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    y = Dropout(0.1)(torch.ones(1000, 1001))
    kept = y != 0
    assert 1 - kept.float().mean().item() == pytest.approx(0.1, abs=0.002)
    assert y[kept].unique().tolist() == pytest.approx([1 / 0.9], rel=1e-4)
    by_column = 1 - kept.float().mean(dim=0)  # no lane of a draw is worn out
    assert by_column.min() > 0.04
    assert by_column.max() < 0.16


def test_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 5, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, (y / x).detach())


def test_torch_seed_decides_the_mask() -> None:
    dropout, x = Dropout(0.3), torch.ones(40)
    torch.manual_seed(5)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_evaluation_and_rate_zero_change_nothing() -> None:
    x = torch.randn(3, 3)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_inside_a_drawing_its_seed_decides_and_torch_is_left_alone() -> None:
    dropout, x = Dropout(0.3), torch.ones(40)
    state = torch.get_rng_state()
    with drawing_from(5):
        first, second = dropout(x), dropout(x)
    torch.manual_seed(99)
    with drawing_from(5):
        assert torch.equal(dropout(x), first)
        assert torch.equal(dropout(x), second)
    assert not torch.equal(first, second)
    torch.set_rng_state(state)
    with drawing_from(5):
        dropout(x)
    assert torch.equal(torch.get_rng_state(), state)
