from __future__ import annotations

import torch
from torch import nn

from headstart.training import reduction
from headstart.training.ranks import Alone
from headstart.training.reduction import SummedGradient, buckets_of


def parameters(*sizes: int) -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(size)) for size in sizes]


def test_gradients_and_numbers_are_summed_over_the_processes(in_threads) -> None:
    """By hand: rank r has gradients of r + 1, r + 2 .., and none for the third parameter."""

    def work(ranks):
        mine = parameters(3, 2, 4, 1)
        for place in (0, 1, 3):
            mine[place].grad = torch.full_like(mine[place], ranks.launch.rank + 1.0 + place)
        if ranks.launch.rank == 1:
            mine[3].grad = None
        numbers = SummedGradient(mine, ranks).sum_up([ranks.launch.rank, 0.5])
        return numbers, [None if p.grad is None else p.grad.tolist() for p in mine]

    assert in_threads(3, work) == [([3.0, 1.5], [[6.0] * 3, [9.0] * 2, None, [10.0]])] * 3


def test_the_sum_is_the_same_to_the_bit_in_every_process_and_at_every_step(in_threads) -> None:
    def work(ranks):
        generator = torch.Generator().manual_seed(ranks.launch.rank)
        (weight,) = parameters(1000)
        shared, found = SummedGradient([weight], ranks), []
        drawn = torch.randn(1000, generator=generator)
        for _ in range(2):
            weight.grad = drawn.clone()
            shared.sum_up([])
            found.append(weight.grad.clone())
        return found

    first, *others = in_threads(3, work)
    assert torch.equal(first[0], first[1])
    assert all(torch.equal(first[0], gradient) for found in others for gradient in found)


def test_a_bucket_leaves_with_its_last_gradient_and_arrives_as_if_all_had_waited(in_threads, monkeypatch) -> None:
    """Buckets of 4 and of 2 + 3 numbers, the last parameters first; the second one arrives in two parts."""
    monkeypatch.setattr(reduction, "BUCKET_NUMBERS", 5)

    def work(ranks):
        mine, left = parameters(2, 3, 4), []
        shared, begin = SummedGradient(mine, ranks), ranks.start_sum
        ranks.start_sum = lambda tensor: left.append(len(tensor)) or begin(tensor)
        steps = []
        for _ in range(2):
            left.clear()
            mine[2].grad = torch.full_like(mine[2], 10.0)  # of an earlier batch of this step
            shared.receive(mine[1], [torch.full_like(mine[1], 1.0), torch.full_like(mine[1], 2.0)])
            assert not left  # the others may have the first bucket full first, and would wait for another one
            rows = torch.sparse_coo_tensor([[0, 1, 1]], [1.0, 2.0, 3.0], (4,), check_invariants=True)
            shared.receive(mine[2], [rows, torch.full_like(mine[2], float(ranks.launch.rank))])
            assert left == [4]
            mine[0].grad = torch.ones_like(mine[0])
            shared.sum_up([])
            steps.append([p.grad.tolist() for p in mine])
            for parameter in mine:
                parameter.grad = None
        return steps

    once = [[2.0] * 2, [6.0] * 3, [23.0, 31.0, 21.0, 21.0]]
    assert in_threads(2, work) == [[once] * 2] * 2


def test_buckets_hold_every_parameter_once_in_order_and_no_more_than_they_have_room_for(monkeypatch) -> None:
    monkeypatch.setattr(reduction, "BUCKET_NUMBERS", 10)
    given = parameters(4, 6, 1, 25, 9, 1)
    buckets = buckets_of(given)
    assert [[p.numel() for p in bucket] for bucket in buckets] == [[4, 6], [1], [25], [9, 1]]
    assert all(a is b for a, b in zip(given, [p for bucket in buckets for p in bucket], strict=True))


def test_alone_nothing_is_touched() -> None:
    (weight,) = parameters(2)
    weight.grad = gradient = torch.ones(2)
    assert SummedGradient([weight], Alone()).sum_up([1, 2]) == [1, 2]
    assert weight.grad is gradient
