from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from headstart.encoders.kernels.dropout import Dropout
from headstart.training.data_parallel import DataParallelGradient, parts_of, shares_of

pytestmark = pytest.mark.usefixtures("two_threads")


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Embedding(20, 6, sparse=True), Dropout(0.2), nn.Flatten(), nn.Linear(18, 4), nn.Linear(4, 2)
    )


def loss_of(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(ids), torch.zeros(len(ids), dtype=torch.long), reduction="sum") / 8


IDS = torch.randint(0, 20, (8, 3), generator=torch.Generator().manual_seed(1))


def test_parts_give_the_gradient_of_the_whole() -> None:
    model = network().eval()
    whole = loss_of(model, IDS)
    expected = torch.autograd.grad(whole, list(model.parameters()))
    shared = DataParallelGradient(list(model.parameters()))
    for _ in range(2):  # the arrays of the first step serve the second
        found = shared.of([partial(loss_of, model, IDS[:3]), partial(loss_of, model, IDS[3:])])
        assert found == pytest.approx(float(whole.detach()), abs=1e-6)
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient.to_dense())
            parameter.grad = None


def test_a_gradient_that_is_there_is_added_to() -> None:
    model = network().eval()
    shared = DataParallelGradient(list(model.parameters()))
    losses = [partial(loss_of, model, IDS[:4]), partial(loss_of, model, IDS[4:])]
    shared.of(losses)
    once = [parameter.grad.clone() for parameter in model.parameters()]
    shared.of(losses)
    for parameter, gradient in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)


def test_a_receiver_gets_every_gradient_once_in_the_order_of_the_parts_while_others_are_to_come() -> None:
    model = network().eval()
    losses = [partial(loss_of, model, IDS[:3]), partial(loss_of, model, IDS[3:])]
    DataParallelGradient(list(model.parameters())).of(losses)
    expected = {id(p): p.grad for p in model.parameters()}
    found: dict[int, torch.Tensor] = {}
    ended: list[torch.Tensor] = []
    # The gradient of what every path begins with is the last one of a part's backward pass.
    hook = model[0].weight.register_hook(ended.append)

    def receive(parameter: nn.Parameter, shares: list[torch.Tensor]) -> None:
        assert id(parameter) not in found
        assert len(shares) == 2
        if parameter is model[4].bias:
            assert len(ended) < len(losses)
        found[id(parameter)] = sum(share.to_dense() for share in shares)

    fresh = [p.grad for p in model.parameters()]
    DataParallelGradient(list(model.parameters())).of(losses, receive)
    hook.remove()
    assert len(ended) == len(losses)
    assert all(p.grad is before for p, before in zip(model.parameters(), fresh, strict=True))
    assert found.keys() == expected.keys()
    for key, gradient in found.items():
        torch.testing.assert_close(gradient, expected[key].to_dense())


def test_a_receiver_gets_what_only_some_parts_read() -> None:
    model, found = network().eval(), {}
    losses = [partial(loss_of, model, IDS), lambda: model[4].bias.sum()]
    DataParallelGradient(list(model.parameters())).of(losses, lambda p, shares: found.update({id(p): len(shares)}))
    assert found == {id(p): 2 if p is model[4].bias else 1 for p in model.parameters()}


def test_what_is_dropped_follows_from_the_seed_whatever_part_is_first() -> None:
    def gradient() -> list[torch.Tensor]:
        model = network().train()
        torch.manual_seed(3)
        DataParallelGradient(list(model.parameters())).of([partial(loss_of, model, IDS[i::4]) for i in range(4)])
        return [parameter.grad for parameter in model.parameters()]

    first = gradient()
    assert all(torch.equal(a, b) for _ in range(5) for a, b in zip(first, gradient(), strict=True))


def test_frozen_parameters_are_left_alone() -> None:
    model = network().eval()
    model[0].requires_grad_(False)
    DataParallelGradient(list(model.parameters())).of([partial(loss_of, model, IDS)])
    assert model[0].weight.grad is None
    assert model[3].weight.grad is not None


def test_parts_have_about_as_many_units_and_every_row_once() -> None:
    lengths = [3, 50, 7, 20, 20, 9, 1, 30]
    parts = parts_of([1, 2, 3, 4, 6, 7], lengths)
    assert sorted(row for part in parts for row in part) == [1, 2, 3, 4, 6, 7]
    units = [sum(lengths[row] for row in part) for part in parts]
    assert max(units) - min(units) <= 50
    assert parts_of([4], lengths) == [[4]]


def test_shares_have_every_example_once_and_about_equal_lengths() -> None:
    """By hand: 9 to the first process; 8 and 1 to the second; 4, 3 and 3 to the third. They keep the order given."""
    assert shares_of([5, 6, 7, 8, 1, 2], [3, 9, 4, 8, 1, 3], 3) == [[6], [8, 1], [5, 7, 2]]
    assert shares_of([4, 2], [0, 7], 3) == [[2], [4], []]
    assert shares_of([4, 2, 9], [1, 7, 7], 1) == [[4, 2, 9]]
    assert shares_of([], [], 2) == [[], []]
