from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from headstart.training import shared_arrays
from headstart.training.shared_arrays import SharedArray, shared_array

WORLD = 3
LIKE = torch.zeros(1)


class Meeting:
    """What processes tell each other, between threads."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(WORLD, timeout=30)
        self.told: dict[int, bool] = {}

    def of(self, rank: int) -> Any:
        def all_could(could: bool) -> bool:
            self.told[rank] = could
            self.barrier.wait()
            answer = all(self.told.values())
            self.barrier.wait()
            return answer

        return all_could


def everywhere(work: Any) -> list[Any]:
    """work(rank, all_could) in a thread for each rank."""
    meeting = Meeting()
    with ThreadPoolExecutor(WORLD) as pool:
        return list(pool.map(lambda rank: work(rank, meeting.of(rank)), range(WORLD)))


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shared_arrays, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.parametrize("numbers", [1, 2, 7, 3_000])
def test_the_sum_is_in_everybodys_array_and_the_next_one_too(numbers: int, memory: Path) -> None:
    def work(rank: int, all_could: Any) -> list[torch.Tensor]:
        arrays = shared_array(numbers, LIKE, "a", rank, WORLD, all_could)
        assert arrays is not None
        shared, found = SharedArray(arrays, rank, lambda: all_could(True)), []
        for step in range(3):
            shared.mine.copy_(torch.arange(numbers) * (rank + 1) + step)
            shared.sum_()
            found.append(shared.mine.clone())
            all_could(True)  # before anybody writes again
        return found

    for found in everywhere(work):
        for step, total in enumerate(found):
            torch.testing.assert_close(total, torch.arange(float(numbers)) * 6 + 3 * step)
    assert not list(memory.iterdir())  # nothing is left behind by processes that are killed later


def test_without_room_for_one_of_them_there_is_none_for_all(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = memory / "b-1"
    real = shared_arrays.reserved
    monkeypatch.setattr(shared_arrays, "reserved", lambda file, size: file != full and real(file, size))
    assert everywhere(lambda rank, all_could: shared_array(5, LIKE, "b", rank, WORLD, all_could)) == [None] * WORLD
    assert not list(memory.iterdir())


def test_processes_that_do_not_see_each_others_memory_do_without(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shared_arrays.mapped

    def elsewhere(file: Path, numbers: int, like: torch.Tensor) -> torch.Tensor:
        return real(file.with_name("elsewhere") if file.name == "c-2" else file, numbers, like)

    monkeypatch.setattr(shared_arrays, "mapped", elsewhere)
    assert everywhere(lambda rank, all_could: shared_array(5, LIKE, "c", rank, WORLD, all_could)) == [None] * WORLD
    assert not list(memory.iterdir())


def test_more_memory_than_there_is_is_not_reserved(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(descriptor: int, offset: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", no_room)
    assert not shared_arrays.reserved(memory / "d", 10)
    assert not shared_arrays.reserved(memory / "missing" / "d", 10)


def test_a_file_of_another_process_that_is_there_is_an_error_and_not_used(memory: Path) -> None:
    (memory / "e").write_bytes(b"")
    with pytest.raises(FileExistsError):
        shared_arrays.reserved(memory / "e", 10)
