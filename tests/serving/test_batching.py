from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from headstart.serving.batching import Batcher, Bounds, OverloadError, Work


class Doubling:
    """Doubles numbers, once it may; keeps what it was given together. A negative number is refused."""

    def __init__(self) -> None:
        self.began, self.may_go = threading.Event(), threading.Event()
        self.batches: list[list[int]] = []

    def __call__(self, items: list[int]) -> list[int]:
        self.began.set()
        self.may_go.wait(10)
        self.batches.append(items)
        if min(items) < 0:
            raise ValueError(f"negative: {min(items)}")
        return [2 * item for item in items]


@pytest.fixture
def doubling() -> Doubling:
    return Doubling()


@pytest.fixture
def batcher() -> Iterator[Callable[..., Batcher]]:
    made: list[Batcher] = []

    def make(**bounds: int) -> Batcher:
        made.append(Batcher(Bounds(**bounds)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def work(compute: Doubling, kind: str = "double") -> Work:
    return Work(kind, compute, size=lambda item: 1)


async def held_up(doubling: Doubling, *asked: Awaitable[Any]) -> list[asyncio.Future[Any]]:
    """The first is being computed, and does not end before it may; the others wait."""
    first = asyncio.ensure_future(asked[0])
    await asyncio.to_thread(doubling.began.wait, 10)
    others = [asyncio.ensure_future(one) for one in asked[1:]]
    await asyncio.sleep(0.05)
    return [first, *others]


async def together(doubling: Doubling, *asked: Awaitable[Any]) -> list[Any]:
    tasks = await held_up(doubling, *asked)
    doubling.may_go.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_jobs_that_wait_are_computed_together(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one = batcher()
    found = asyncio.run(together(doubling, *(one.ask(work(doubling), [n, n + 100], 10) for n in range(5))))
    assert found == [[2 * n, 2 * n + 200] for n in range(5)]
    assert doubling.batches == [[0, 100], [1, 101, 2, 102, 3, 103, 4, 104]]


def test_a_batch_has_its_bounds_and_one_kind(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one, other = batcher(items=3), Doubling()
    other.may_go.set()
    jobs = [one.ask(work(doubling), [n], 10) for n in range(6)]
    found = asyncio.run(together(doubling, *jobs, one.ask(work(other, "other"), [7], 10)))
    assert found == [[0], [2], [4], [6], [8], [10], [14]]
    assert doubling.batches == [[0], [1, 2, 3], [4, 5]]
    assert other.batches == [[7]]


def test_a_batch_ends_when_it_has_enough_characters(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one, long = batcher(characters=10), Work("long", doubling, size=lambda item: 6)
    asyncio.run(together(doubling, *(one.ask(long, [n], 10) for n in range(6))))
    assert doubling.batches == [[0], [1, 2], [3, 4], [5]]


def test_a_bad_job_spoils_no_other(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one = batcher()
    found = asyncio.run(together(doubling, *(one.ask(work(doubling), [n], 10) for n in (1, 2, -3, 4))))
    assert [found[0], found[1], found[3]] == [[2], [4], [8]]
    assert isinstance(found[2], ValueError)
    assert str(found[2]) == "negative: -3"


def test_who_finds_no_room_is_told_to_come_back(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one = batcher(waiting=3)
    found = asyncio.run(together(doubling, *(one.ask(work(doubling), [n, n], 10) for n in range(4))))
    assert found[:2] == [[0, 0], [2, 2]]
    assert all(isinstance(answer, OverloadError) and answer.seconds == 1 for answer in found[2:])


def test_a_job_larger_than_all_bounds_is_computed_alone(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    doubling.may_go.set()
    one = batcher(items=2, waiting=2)
    assert asyncio.run(one.ask(work(doubling), [1, 2, 3, 4], 10)) == [2, 4, 6, 8]


def test_a_large_job_is_computed_in_parts_and_others_have_their_turn(
    batcher: Callable[..., Batcher], doubling: Doubling
) -> None:
    one, other = batcher(items=2), Doubling()
    other.may_go.set()
    large = one.ask(work(doubling), [1, 2, 3, 4, 5], 10)
    found = asyncio.run(together(doubling, large, one.ask(work(other, "other"), [7], 10)))
    assert found == [[2, 4, 6, 8, 10], [14]]
    assert doubling.batches == [[1, 2], [3, 4], [5]]


def test_the_rest_of_a_job_that_was_given_up_is_not_computed(
    batcher: Callable[..., Batcher], doubling: Doubling
) -> None:
    def few(results: Sequence[Any]) -> None:
        if 4 in results:
            raise ValueError("too much")

    one = batcher(items=1)
    jobs = [one.ask(work(doubling), [1, 2, 3], 10, few), one.ask(work(doubling), [4], 10)]
    found = asyncio.run(together(doubling, *jobs))
    assert (str(found[0]), found[1]) == ("too much", [8])
    assert doubling.batches == [[1], [4], [2]]


def test_a_result_may_be_what_went_wrong_with_its_item(batcher: Callable[..., Batcher]) -> None:
    def halves(items: list[int]) -> list[Any]:
        return [ValueError(f"odd: {item}") if item % 2 else item // 2 for item in items]

    one, halving = batcher(), Work("halve", halves, size=lambda item: 1)

    async def asked() -> list[Any]:
        return await asyncio.gather(*(one.ask(halving, [n], 10) for n in (2, 3, 4)), return_exceptions=True)

    found = asyncio.run(asked())
    assert (found[0], str(found[1]), found[2]) == ([1], "odd: 3", [2])


@pytest.mark.parametrize("error", [SystemExit("panic"), StopIteration("no more"), KeyboardInterrupt()], ids=repr)
def test_whatever_is_raised_the_next_job_is_computed(
    batcher: Callable[..., Batcher], doubling: Doubling, error: BaseException
) -> None:
    def panics(items: list[int]) -> list[int]:
        raise error

    doubling.may_go.set()
    one = batcher()
    with pytest.raises(RuntimeError, match=type(error).__name__):
        asyncio.run(one.ask(Work("panic", panics, size=lambda item: 1), [1], 10))
    assert asyncio.run(one.ask(work(doubling), [2], 10)) == [4]


def test_who_left_takes_no_room(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one = batcher(waiting=3)

    async def in_turn() -> list[Any]:
        first, left = await held_up(doubling, one.ask(work(doubling), [0], 10), one.ask(work(doubling), [1, 2, 3], 10))
        left.cancel()
        await asyncio.wait([left])
        assert one.waiting == 0
        last = asyncio.ensure_future(one.ask(work(doubling), [4, 5], 10))
        await asyncio.sleep(0)
        doubling.may_go.set()
        return await asyncio.gather(first, last)

    assert asyncio.run(in_turn()) == [[0], [8, 10]]
    assert doubling.batches == [[0], [4, 5]]


def test_nobody_computes_for_someone_who_left(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    one = batcher()

    async def impatient() -> list[Any]:
        late = one.ask(work(doubling), [2], 0.01)
        return await together(doubling, one.ask(work(doubling), [1], 10), late, one.ask(work(doubling), [3], 10))

    first, second, third = asyncio.run(impatient())
    assert (first, third) == ([2], [6])
    assert isinstance(second, OverloadError)
    assert "within 0.01 seconds" in str(second)
    assert doubling.batches == [[1], [3]]


def test_closing_answers_what_waits_and_takes_nothing_more(doubling: Doubling) -> None:
    one = Batcher()

    async def closed() -> tuple[list[Any], BaseException]:
        tasks = await held_up(doubling, *(one.ask(work(doubling), [n], 10) for n in range(3)))
        doubling.may_go.set()
        await asyncio.to_thread(one.close)
        with pytest.raises(OverloadError) as late:
            await one.ask(work(doubling), [4], 10)
        return await asyncio.gather(*tasks), late.value

    found, late = asyncio.run(closed())
    assert found == [[0], [2], [4]]
    assert str(late) == "The server is stopping."


def test_nothing_asked_is_nothing_computed(batcher: Callable[..., Batcher], doubling: Doubling) -> None:
    assert asyncio.run(batcher().ask(work(doubling), [], 10)) == []
    assert doubling.batches == []
