from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import headstart.comparison.joint_pretraining as room
from headstart.errors import BudgetError, EndedElsewhereError
from headstart.pretraining.base import Workplace
from headstart.progress import Progress, result_of
from headstart.training.coordination import awaited, until_ended


def test_the_others_join_each_pretraining_and_one_that_is_begun_again(
    in_threads: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[str] = []

    def join_run(place: Workplace) -> Generator[Progress, None, None]:
        joined.append((yield from awaited(place.ranks, "run")))
        yield from until_ended(place.ranks)

    monkeypatch.setattr(room, "join_run", join_run)

    def work(ranks: Any) -> Any:
        if not ranks.launch.is_first:
            return result_of(room.join_pretrainings(Workplace(tmp_path, 1, ranks), until="cells"))
        pretrainings = room.Pretrainings(ranks)
        with pretrainings.begun("static") as alone:
            assert alone is None
        with suppress(BudgetError), pretrainings.begun("elmo") as too_short:
            too_short.publish("run", "elmo")
            time.sleep(0.3)
            raise BudgetError("0.1 s are too short.")
        for kind in ("elmo", "bert"):
            with pretrainings.begun(kind) as inner:
                inner.publish("run", kind)
                time.sleep(0.3)
        ranks.publish("cells", [1, 2])
        return None

    assert in_threads(2, work) == [None, [1, 2]]
    assert joined == ["elmo", "elmo", "bert"]


def test_a_pretraining_that_ends_the_first_process_ends_the_others(in_threads: Any, tmp_path: Path) -> None:
    def work(ranks: Any) -> Any:
        if not ranks.launch.is_first:
            with pytest.raises(EndedElsewhereError):
                result_of(room.join_pretrainings(Workplace(tmp_path, 1, ranks), until="cells"))
            return None
        with room.Pretrainings(ranks).begun("bert"):
            time.sleep(0.1)
            raise BudgetError("0.1 s are too short.")

    with pytest.raises(BudgetError):
        in_threads(2, work)
