import threading
import time

import pytest
import torch
from threadpoolctl import threadpool_info

from headstart.cores import alone, on_cores

pytestmark = pytest.mark.usefixtures("two_threads")


def blas_threads() -> list[int]:
    """Numpy's, which the shares use; other packages may load a BLAS of their own later."""
    blas = (library for library in threadpool_info() if library["user_api"] == "blas")
    return [library["num_threads"] for library in blas if "numpy" in library["filepath"]]


def test_results_come_in_the_order_of_the_works() -> None:
    def slow() -> str:
        time.sleep(0.05)
        return "first"

    assert on_cores([slow, lambda: "second", lambda: "third"]) == ["first", "second", "third"]


def test_shares_run_at_the_same_time_on_threads_that_are_alone() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def share() -> tuple[bool, int, int]:
        meeting.wait()
        return alone(), torch.get_num_threads(), max(blas_threads(), default=1)

    assert on_cores([share, share]) == [(True, 1, 1), (True, 1, 1)]
    assert not alone()
    assert torch.get_num_threads() == 2


def test_numpys_threads_are_given_back_even_after_an_error() -> None:
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        on_cores([lambda: 1 / 0, lambda: 1.0])
    assert blas_threads() == before


def test_an_error_is_raised_when_all_shares_have_ended() -> None:
    ended = []

    def slow() -> None:
        time.sleep(0.1)
        ended.append("slow")

    with pytest.raises(ZeroDivisionError):
        on_cores([lambda: 1 // 0, slow])
    assert ended == ["slow"]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_share_records_gradients_as_its_caller_does(wanted: bool) -> None:
    with torch.set_grad_enabled(wanted):
        assert on_cores([torch.is_grad_enabled] * 2) == [wanted, wanted]


def test_shares_of_a_share_are_done_on_its_own_thread() -> None:
    def share() -> bool:
        here = threading.get_ident()
        return on_cores([threading.get_ident, threading.get_ident]) == [here, here]

    assert on_cores([share, share]) == [True, True]


def test_with_one_thread_all_is_done_here_and_alone() -> None:
    torch.set_num_threads(1)
    here = threading.get_ident()
    assert on_cores([lambda: (threading.get_ident(), alone())] * 2) == [(here, True)] * 2
    assert not alone()


def test_a_single_share_may_use_all_cores() -> None:
    assert on_cores([lambda: (alone(), torch.get_num_threads())]) == [(False, 2)]


def test_threads_made_later_have_all_cores() -> None:
    on_cores([alone, alone])
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert found == [2]
