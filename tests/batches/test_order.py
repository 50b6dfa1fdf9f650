from __future__ import annotations

import numpy as np
import pytest

from headstart.batches.order import Permutation, seed_of


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 65, 1000, 4097])
def test_every_index_gives_another_item(n: int) -> None:
    assert sorted(Permutation(n, 0, "x").take(np.arange(n))) == list(range(n))


def test_one_item_is_what_many_are() -> None:
    order = Permutation(1000, 5)
    assert [order[i] for i in (0, 17, 999)] == order.take(np.array([0, 17, 999])).tolist()


def test_seeds_give_different_orders_and_the_same_seed_the_same() -> None:
    first, again, other = (Permutation(500, seed).take(np.arange(500)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first == other).sum() < 10


def test_it_shuffles() -> None:
    """Neighbours in the order are as far apart as in a uniform shuffle: a third of the length on average."""
    items = Permutation(10_000, 3).take(np.arange(10_000))
    assert np.abs(np.diff(items)).mean() == pytest.approx(10_000 / 3, rel=0.03)


def test_no_memory_grows_with_the_length() -> None:
    assert 0 <= Permutation(10**15, 1)[123456789] < 10**15


def test_outside_is_refused() -> None:
    with pytest.raises(IndexError):
        Permutation(5, 0)[5]


def test_seed_parts_do_not_run_together() -> None:
    assert seed_of(1, 23) != seed_of(12, 3)
    assert 0 <= seed_of("a") < 2**63
