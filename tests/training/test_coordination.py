"""Two processes played by threads: a mistake of one is raised by the first, and the end of the first is that of all."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

from headstart.errors import DataError, EndedElsewhereError, HeadstartError
from headstart.progress import result_of
from headstart.training.coordination import (
    Every,
    awaited,
    between_exchanges,
    helping,
    leading,
    meet_at,
    scope,
    until_ended,
)
from headstart.training.ranks import ENDED, Alone


def steps(count: int, closed: list[str] | None = None) -> Generator[int, None, str]:
    try:
        for number in range(count):
            time.sleep(0.01)
            yield number
        return "done"
    finally:
        if closed is not None:
            closed.append("closed")


def test_alone_the_events_and_the_result_are_those_of_the_job() -> None:
    assert list(leading(Alone(), steps(3))) == [0, 1, 2]
    assert result_of(leading(Alone(), steps(3))) == "done"


def test_a_mistake_of_another_process_is_raised_by_the_first_one_and_ends_both(in_threads: Any) -> None:
    closed: list[str] = []

    def mistaken() -> Generator[int, None, None]:
        yield 0
        raise DataError("b.txt: is empty.")

    def work(ranks: Any) -> None:
        if ranks.launch.is_first:
            with pytest.raises(HeadstartError, match=r"^Process 1, on machine 0: b.txt: is empty\.$"):
                result_of(leading(ranks, steps(10_000, closed)))
            ranks.board[ENDED] = True
        else:
            with pytest.raises(EndedElsewhereError):
                result_of(helping(ranks, mistaken()))

    in_threads(2, work)
    assert closed == ["closed"]


def test_the_others_end_when_the_first_one_does_and_give_their_result_when_it_does_not(in_threads: Any) -> None:
    closed: list[str] = []

    def work(ranks: Any) -> Any:
        if ranks.launch.is_first:
            return time.sleep(0.3)
        return result_of(helping(ranks, steps(10_000, closed)))

    assert in_threads(2, work) == [None, None]
    assert closed == ["closed"]

    def longer(ranks: Any) -> Any:
        if ranks.launch.is_first:
            return result_of(awaited(ranks, "finished"))
        result = result_of(helping(ranks, steps(3)))
        ranks.publish("finished", result)
        return result

    assert in_threads(2, longer) == ["done", "done"]


def test_the_end_of_one_of_several_jobs_is_seen_and_the_next_one_goes_on(in_threads: Any) -> None:
    def work(ranks: Any) -> list[Any]:
        if not ranks.launch.is_first:
            with pytest.raises(EndedElsewhereError):
                result_of(awaited(ranks.scoped("first"), "never"))
            return [result_of(awaited(ranks.scoped("second"), "never")), result_of(awaited(ranks, "after"))]
        with pytest.raises(DataError), scope(ranks, "first"):
            raise DataError("a.txt: is empty.")
        with scope(ranks, "second"):
            time.sleep(0.2)
        ranks.publish("after", 1)
        return []

    assert in_threads(2, work) == [[], [None, 1]]


def test_a_process_that_waits_leaves_when_a_stop_was_asked_for(in_threads: Any) -> None:
    def work(ranks: Any) -> Any:
        if ranks.launch.is_first:
            return time.sleep(0.3)
        ranks.should_stop(True)
        result_of(until_ended(ranks))
        assert not ranks.ended()
        return result_of(awaited(ranks, "never"))

    assert in_threads(2, work) == [None, None]


def test_what_is_claimed_belongs_to_one_process(in_threads: Any) -> None:
    claimed = in_threads(3, lambda ranks: [number for number in range(50) if ranks.claim(f"cell/{number}")])
    assert sorted(number for own in claimed for number in own) == list(range(50))


def test_something_is_due_once_in_its_time() -> None:
    every = Every(60.0)
    assert [every.is_due() for _ in range(3)] == [True, False, False]


def test_all_processes_meet_before_any_goes_on(in_threads: Any) -> None:
    come: list[int] = []

    def work(ranks: Any) -> list[int]:
        time.sleep(0.1 * ranks.launch.rank)
        come.append(ranks.launch.rank)
        result_of(meet_at(ranks, "here"))
        return sorted(come)

    assert in_threads(3, work) == [[0, 1, 2]] * 3
    assert list(meet_at(Alone(), "here")) == []


def test_a_first_process_that_is_closed_between_two_exchanges_ends_the_others(in_threads: Any) -> None:
    def numbers(ranks: Any) -> Generator[int, None, str]:
        for number in range(5):
            yield from between_exchanges(ranks, number)
        return "done"

    def work(ranks: Any, stop_at: int) -> tuple[list[int], str | None]:
        events, seen = numbers(ranks) if ranks.launch.is_first else helping(ranks, numbers(ranks)), []
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                return seen, end.value
            seen += [event] if isinstance(event, int) else []
            if ranks.launch.is_first and event == stop_at:
                events.close()

    assert in_threads(2, lambda ranks: work(ranks, 9)) == [([0, 1, 2, 3, 4], "done")] * 2
    assert in_threads(2, lambda ranks: work(ranks, 2)) == [([0, 1, 2], None)] * 2
