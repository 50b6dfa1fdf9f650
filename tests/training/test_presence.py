from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import headstart.training.presence as room
from headstart.errors import DataError, LostProcessError
from headstart.training.launch import Launch
from headstart.training.presence import Watch, beats, came, left, present
from headstart.training.ranks import Alone


class OnBoard(Alone):
    """A process of three, of which the last is on another machine, with a dictionary for the launcher's store."""

    def __init__(self, rank: int, board: dict[str, Any]) -> None:
        self.launch, self.board = Launch(rank, 3, machine=rank // 2, machines=2, joins=True), board

    def publish(self, key: str, value: Any) -> None:
        self.board[key] = value

    def published(self, key: str) -> Any:
        return self.board.get(key)


@pytest.fixture
def first() -> OnBoard:
    return OnBoard(0, {})


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [0.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: moment[0])
    return moment


def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_process_that_died_is_told_and_one_that_left_or_runs_is_not(first: OnBoard) -> None:
    watch, gone = Watch(first), dead()
    watch.raise_lost()  # nobody has come yet
    first.publish(came(1), [0, os.getppid()])
    first.publish(came(2), [1, gone])  # a number of another machine
    watch.raise_lost()
    first.publish(came(1), [0, gone])
    with pytest.raises(LostProcessError, match=r"^Process 1 has ended without a word"):
        watch.raise_lost()
    first.publish(left(1), True)
    watch.raise_lost()


def test_the_others_watch_the_first_process_alone(first: OnBoard) -> None:
    watch, gone = Watch(OnBoard(1, first.board)), dead()
    first.publish(came(2), [0, gone])
    watch.raise_lost()
    first.publish(came(0), [0, gone])
    with pytest.raises(LostProcessError, match=r"^Process 0 has ended"):
        watch.raise_lost()


def test_a_process_of_another_machine_is_gone_when_it_was_not_heard_of_for_long(
    first: OnBoard, now: list[float]
) -> None:
    watch = Watch(first)
    first.publish(came(2), [1, 1])
    for beat in range(3):
        first.publish(beats(2), beat)
        watch.raise_lost()
        now[0] += room.SILENT_SECONDS - 1
        watch.raise_lost()
    now[0] += 2
    with pytest.raises(LostProcessError, match=r"^Process 2, on machine 1, has not been heard of for 120 s"):
        watch.raise_lost()


def test_who_is_present_beats_and_says_so_when_it_leaves_unless_it_fails(first: OnBoard) -> None:
    with present(first):
        assert first.board[came(0)] == [0, os.getpid()]
        assert left(0) not in first.board
    assert (first.board[beats(0)], first.board[left(0)]) == (0, True)
    told, failed = OnBoard(0, {}), OnBoard(0, {})
    with pytest.raises(DataError), present(told):
        raise DataError("a.txt: is empty.")
    with pytest.raises(ZeroDivisionError), present(failed):
        raise ZeroDivisionError
    assert left(0) in told.board
    assert left(0) not in failed.board
