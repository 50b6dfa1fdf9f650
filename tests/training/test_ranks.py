from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch.distributed import HashStore

from headstart.errors import EndedElsewhereError, LostProcessError
from headstart.training.launch import Launch
from headstart.training.ranks import Alone, Together, joined, meet, watched


def together(rank: int, store: HashStore, attempt: str = "1") -> Together:
    return Together(Launch(rank, 2, rank, joins=True), store, attempt)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(timeout=30) for future in [pool.submit(work) for work in works]]


def test_processes_agree_on_a_name_for_their_start_whatever_an_earlier_one_left() -> None:
    store = HashStore()

    def start() -> list[str]:
        return at_once(*(lambda rank=rank: meet(Launch(rank, 3), store, 20) for rank in (2, 0, 1)))

    first, second = start(), start()
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]


def test_a_process_that_never_comes_is_said_and_not_waited_for_forever() -> None:
    with pytest.raises(LostProcessError, match="have not come"):
        meet(Launch(1, 2), HashStore(), 0.2)


def test_messages_are_read_by_the_others_of_the_same_start() -> None:
    store = HashStore()
    first, second = together(0, store), together(1, store)
    assert second.published("run") is None
    first.publish("run", {"steps": [1, None, "ü"]})
    assert second.published("run") == {"steps": [1, None, "ü"]}
    assert together(1, store, attempt="2").published("run") is None


def test_a_request_to_stop_reaches_the_first_process_and_only_that_one_stops() -> None:
    store = HashStore()
    first, second = together(0, store), together(1, store)
    assert not first.should_stop(False)
    assert not second.should_stop(True)
    assert first.should_stop(False)
    assert not second.should_stop(False)


def test_a_job_among_several_has_keys_and_an_end_of_its_own_but_a_stop_is_of_all() -> None:
    store = HashStore()
    first, second = together(0, store), together(1, store)
    one, other = first.scoped("one"), second.scoped("one")
    one.publish("run", 1)
    one.publish("ended", False)
    assert (other.published("run"), other.ended()) == (1, True)
    assert (second.published("run"), second.ended(), second.scoped("two").ended()) == (None, False, False)
    assert (one.claim("cell"), other.claim("cell"), second.claim("cell")) == (True, False, True)
    assert not first.stopping()
    other.should_stop(True)
    assert first.stopping()
    assert one.stopping()
    assert first.should_stop(False)


def test_the_others_see_how_the_first_one_ended() -> None:
    store = HashStore()
    first, second = together(0, store), together(1, store)
    assert not second.ended()
    first.publish("ended", False)
    assert second.ended()
    first.publish("ended", True)
    with pytest.raises(EndedElsewhereError):
        second.ended()


def test_what_a_launch_has_started_is_known_to_its_next_start_and_to_no_other_launch() -> None:
    store = HashStore()
    together(0, store).start_here("runs/a")
    assert together(0, store, attempt="2").started_here("runs/a")
    assert not together(0, store, attempt="2").started_here("runs/b")
    assert not together(0, HashStore()).started_here("runs/a")


def test_what_torch_says_of_a_lost_process_is_one_sentence_without_its_source() -> None:
    with pytest.raises(LostProcessError, match=r"reached \(Connection closed by peer\)\."), watched():
        raise RuntimeError("[/gloo/transport/tcp/pair.cc:547] Connection closed by peer\nmore")


def test_alone_a_process_keeps_its_tensors() -> None:
    with joined(Launch()) as ranks:
        assert isinstance(ranks, Alone)
        tensor = torch.ones(2)
        ranks.sum_([tensor])
        ranks.share_([tensor])
        assert tensor.tolist() == [1, 1]
        assert [ranks.should_stop(asked) for asked in (True, False)] == [True, False]
