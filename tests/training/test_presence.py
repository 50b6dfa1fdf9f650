from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from headstart.errors import LostProcessError
from headstart.training.launch import Launch
from headstart.training.presence import arrive, came, leave, raise_lost
from headstart.training.ranks import Alone


class Board(Alone):
    """The first of three processes, of which the last is on another machine."""

    launch = Launch(0, 3, machines=2, joins=True)

    def __init__(self) -> None:
        self.board: dict[str, Any] = {}

    def publish(self, key: str, value: Any) -> None:
        self.board[key] = value

    def published(self, key: str) -> Any:
        return self.board.get(key)


def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_process_that_died_is_told_and_one_that_left_or_is_elsewhere_or_runs_is_not() -> None:
    ranks, gone = Board(), dead()
    raise_lost(ranks)
    arrive(ranks)
    ranks.publish(came(1), [0, os.getppid()])
    ranks.publish(came(2), [1, gone])
    raise_lost(ranks)
    ranks.publish(came(1), [0, gone])
    with pytest.raises(LostProcessError, match=r"^Process 1 has ended without a word"):
        raise_lost(ranks)
    second = Board()
    second.launch, second.board = Launch(1, 3, joins=True), ranks.board
    leave(second)
    raise_lost(ranks)
