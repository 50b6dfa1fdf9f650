"""Several processes, played by threads, that encode one text: the bytes of one, whoever begins, stops and goes on."""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headstart
from headstart.atomic import PARTIAL
from headstart.batches.rows import text_row
from headstart.errors import CheckpointError, EndedElsewhereError, HeadstartError
from headstart.inspection import stretches, unfinished
from headstart.inspection.encode import Encoded
from headstart.inspection.shards import RECORD
from headstart.inspection.unfinished import folder_of
from headstart.progress import Notice, Progress, result_of
from headstart.training import shared_folder
from headstart.training.ranks import ENDED

THINGS = ["the film", "a long play", "", "old songs", "his work ,", "the music of the city", "a new story"]
TEXTS = [f"{who} likes {thing} ." if thing else "" for who in ("The cat", "Nobody", "my friend") for thing in THINGS]
TEXTS.append("her sister")  # the last stretch is not full
STRETCH = 3
STRETCHES = -(-len(TEXTS) // STRETCH)


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH", STRETCH)
    monkeypatch.setattr(unfinished, "SECONDS_BETWEEN_SAVES", 0)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def taking_turns(ranks: Any) -> Any:
    """Stretch n belongs to process n % world, so that each of them has some."""
    ranks.claim = lambda key: int(key.rpartition("/")[2]) // STRETCH % ranks.launch.world == ranks.launch.rank
    return ranks


def made(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def alone(pretrained_runs: dict[str, Path], text: Path, tmp_path: Path, in_threads: Any) -> Callable[..., Any]:
    """What one process makes; played by a thread, too, because in the main one ELMo's last bits are others."""

    def encode(kind: str, name: str = "vectors.npy", **options: Any) -> dict[str, Any]:
        out = tmp_path / "alone" / name
        in_threads(1, lambda _: result_of(headstart.encode(pretrained_runs[kind], text, out, **options)))
        return made(tmp_path / "alone")

    return encode


@pytest.mark.parametrize(
    ("world", "kind", "name", "options"),
    [
        (2, "elmo", "vectors.npy", {"pool": "words", "layers": "all"}),
        (3, "bert", "vectors.npy", {}),
        (3, "elmo", "vectors.h5", {}),
        (2, "static", "vectors.parquet", {"pool": "words"}),
        (2, "bert", "vectors.parquet", {"pool": "first", "layers": "all"}),
    ],
)
def test_several_make_the_files_of_one(
    world: int, kind: str, name: str, options: Any, alone: Any, pretrained_runs: Any, text: Path, in_threads: Any
) -> None:
    out = text.parent / "several" / name

    def work(ranks: Any) -> tuple[Encoded, list[Any]]:
        seen: list[Any] = []
        events = headstart.encode(pretrained_runs[kind], text, out, **options, ranks=taking_turns(ranks))
        while True:
            try:
                seen.append(next(events))
            except StopIteration as end:
                return end.value, seen

    results = in_threads(world, work)
    assert len({str(result) for result, _ in results}) == 1
    assert (results[0][0].path, results[0][0].texts, results[0][0].empty) == (out, len(TEXTS), 3)
    steps = [event.done for event in results[0][1] if isinstance(event, Progress) and event.stage == "encoding"]
    assert steps == sorted(steps)
    assert steps[-1] <= len(TEXTS)
    assert made(out.parent) == alone(kind, name, **options)


def stop_first(ranks: Any, run: Path, text: Path, out: Path, when: Callable[[], bool], **options: Any) -> None:
    """Encode until something is true, then stop the first process, and the others with it."""
    events = headstart.encode(run, text, out, ranks=ranks, **options)
    if not ranks.launch.is_first:
        with pytest.raises(EndedElsewhereError):
            result_of(events)
        return
    for _ in events:
        if when():
            break
        time.sleep(0.01)
    events.close()


@pytest.fixture
def begun(pretrained_runs: dict[str, Path], text: Path, in_threads: Any) -> Path:
    """Stopped by two processes after the second one had all its stretches, and the first one not its first one."""
    out = text.parent / "several" / "vectors.npy"

    def only_others(ranks: Any) -> None:
        ranks.claim = lambda key: (key.rpartition("/")[2] != "0") == (ranks.launch.rank == 1)

        def when() -> bool:
            while len(list(folder_of(out).glob(f"*/{RECORD}"))) < STRETCHES - 1:
                time.sleep(0.01)
            return True

        stop_first(ranks, pretrained_runs["bert"], text, out, when)

    in_threads(2, only_others)
    assert not (folder_of(out) / RECORD).exists()
    return out


@pytest.mark.parametrize("world", [1, 2])
def test_no_stretch_is_encoded_again(
    world: int, begun: Path, alone: Any, pretrained_runs: Any, text: Path, in_threads: Any, monkeypatch: Any
) -> None:
    read: list[str] = []
    monkeypatch.setattr(stretches, "text_row", lambda *given: (read.append(given[2]), text_row(*given))[1])
    in_threads(world, lambda ranks: result_of(headstart.encode(pretrained_runs["bert"], text, begun, ranks=ranks)))
    assert sorted(read) == sorted([*TEXTS[:STRETCH], TEXTS[-1]])  # and the last one, as the text may have grown
    assert made(begun.parent) == alone("bert")


def test_shards_of_other_settings_or_of_another_text_are_not_mixed_in(
    begun: Path, alone: Any, pretrained_runs: Any, text: Path
) -> None:
    kept = text.parent / "kept"
    shutil.copytree(begun.parent, kept)
    text.write_text(text.read_text(encoding="utf-8").replace("Nobody likes old", "Nobody hates old"), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"lines 10 to 12 of the text are not those that were encoded\. Give"):
        result_of(headstart.encode(pretrained_runs["bert"], text, kept / begun.name))
    result_of(headstart.encode(pretrained_runs["bert"], text, begun, pool="first"))
    assert made(begun.parent) == alone("bert", pool="first")


def test_a_text_that_grew_is_gone_on_with(begun: Path, alone: Any, pretrained_runs: Any, text: Path) -> None:
    with text.open("a", encoding="utf-8") as file:
        file.write("a new story\n" * 2)
    result_of(headstart.encode(pretrained_runs["bert"], text, begun))
    assert made(begun.parent) == alone("bert")


def test_begun_by_one_or_two_and_finished_by_three(
    alone: Any, pretrained_runs: Any, text: Path, in_threads: Any
) -> None:
    out, run = text.parent / "several" / "vectors.npy", pretrained_runs["bert"]
    options = {"pool": "words"}
    for world in (1, 2):
        when = (folder_of(out) / RECORD).exists
        in_threads(world, lambda ranks: stop_first(taking_turns(ranks), run, text, out, when, **options))  # noqa: B023
        assert (folder_of(out) / RECORD).exists()
        going_on = lambda ranks: list(headstart.encode(run, text, out, ranks=taking_turns(ranks), **options))  # noqa: E731
        assert any(isinstance(event, Notice) for event in in_threads(3, going_on)[0])
        assert made(out.parent) == alone("bert", **options)
        shutil.rmtree(out.parent)
        shutil.rmtree(text.parent / "alone")


def failing(in_threads: Any, work: Callable[[Any], Any]) -> str:
    """What the first of two processes says, with which the other ends, too."""

    def each(ranks: Any) -> str:
        with pytest.raises(HeadstartError) as caught:
            result_of(work(taking_turns(ranks)))
        ranks.board[ENDED] = True
        assert isinstance(caught.value, EndedElsewhereError) != ranks.launch.is_first
        return str(caught.value)

    said: str = in_threads(2, each)[0]
    return said


def test_a_mistake_that_the_second_process_finds_is_said_by_the_first(
    pretrained_runs: Any, text: Path, in_threads: Any
) -> None:
    """A line that is too long in the second stretch; another encoder, another text, a folder that is not seen."""
    run, lines = pretrained_runs["bert"], text.read_text(encoding="utf-8")
    text.write_text(lines.replace("old songs", "film " * 600, 1), encoding="utf-8")
    out = text.parent / "several" / "vectors.npy"
    said = failing(in_threads, lambda ranks: headstart.encode(run, text, out, pool="words", ranks=ranks))
    assert said.startswith(f"Process 1, on machine 0: {text}:4: this text is longer than the 512 pieces")
    shutil.rmtree(out.parent)

    runs = [run, pretrained_runs["elmo"]]
    said = failing(in_threads, lambda ranks: headstart.encode(runs[ranks.launch.rank], text, out, ranks=ranks))
    assert "The encoder, or precision of this process is not that of the first one" in said
    shutil.rmtree(out.parent, ignore_errors=True)

    texts = [text, text.with_name("other.txt")]
    texts[1].write_text(lines.replace("The cat likes his", "The dog likes his"), encoding="utf-8")
    said = failing(in_threads, lambda ranks: headstart.encode(run, texts[ranks.launch.rank], out, ranks=ranks))
    assert "lines 4 to 6 of the text are not those that were encoded. Give the text as it was, the same to all" in said
    shutil.rmtree(out.parent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_folder, "SIGHT_SECONDS", 0.0)
        is_file = Path.is_file
        patch.setattr(Path, "is_file", lambda path: path.suffix != PARTIAL and is_file(path))
        said = failing(in_threads, lambda ranks: headstart.encode(run, text, out, ranks=ranks))
    assert said.startswith(f"Process 1, on machine 0: {folder_of(out)}: is not there for all processes.")


def test_standard_input_is_for_one_process(
    pretrained_runs: Any, text: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"film\n")))
    out = text.parent / "vectors.npy"
    said = failing(in_threads, lambda ranks: headstart.encode(pretrained_runs["bert"], "-", out, ranks=ranks))
    assert said.startswith("Standard input can be read by one process only, and torchrun started 2. Give")
    assert list(text.parent.iterdir()) == [text]
