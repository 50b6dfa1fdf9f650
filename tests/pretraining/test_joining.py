"""Processes played by threads: the whole of `pretrain`, with a cache of its own for each machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.errors import HeadstartError
from headstart.pretraining import joining
from headstart.pretraining.events import Finished, Joined
from headstart.pretraining.loop import Step

SETTINGS = {"encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32}


def train(ranks: Any, corpus: Path, folder: Path, **options: Any) -> list[Any]:
    """Only the first process is told what to do."""
    place = {"out": folder / "run", "ranks": ranks, "cache": folder / f"cache-{ranks.launch.rank}"}
    if not ranks.launch.is_first:
        return list(headstart.pretrain("bert", **place))
    return list(headstart.pretrain("bert", corpus, size="tiny", steps=3, settings=SETTINGS, **place, **options))


def files(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in sorted((cache / "shards").rglob("*.*"))}


def test_a_machine_without_the_shards_makes_the_same_bytes(corpus: Path, tmp_path: Path, in_threads: Any) -> None:
    first, second = in_threads(2, lambda ranks: train(ranks, corpus, tmp_path))
    assert isinstance(first[-1], Finished)
    assert [event.number for event in first if isinstance(event, Step)] == [1, 2, 3]
    assert any(isinstance(event, Joined) for event in second)
    assert not any(isinstance(event, Step | Finished) for event in second)
    shards = files(tmp_path / "cache-0")
    assert shards
    assert files(tmp_path / "cache-1") == shards


def test_a_machine_with_another_text_ends_the_run_with_a_sentence_of_the_first_process(
    corpus: Path, tmp_path: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("Another text , with other words .\n\nAnd a second document .\n")
    monkeypatch.setattr(joining, "discover", lambda sources: [other])
    monkeypatch.setattr(joining, "until_ended", lambda ranks: ())  # the threads know nothing of each other's end

    def work(ranks: Any) -> str:
        with pytest.raises(HeadstartError) as caught:
            train(ranks, corpus, tmp_path)
        return str(caught.value)

    first, second = in_threads(2, work)
    assert "not that of the first process" in second
    assert first == f"Process 1, on machine 0: {second}"
