"""Machines that prepare a text together, each played by a thread: the bytes of one, and one end for all."""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import DataError, EndedElsewhereError, HeadstartError
from headstart.pretraining.base import Workplace
from headstart.pretraining.dividing import OtherMachines
from headstart.pretraining.joining import join_run
from headstart.progress import result_of
from headstart.text import counting, dividing, pool, tokenise
from headstart.text.counting import count_words, learn_pieces
from headstart.text.documents import TextConfig, discover
from headstart.text.shards import ShardWriter
from headstart.text.tokenise import prepare
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import WordCounter
from headstart.training.ranks import ENDED, Alone

LINES = TextConfig(one_per_line=True, valid_share=0.1)


@pytest.fixture(autouse=True)
def many_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SMALL", 0)
    monkeypatch.setattr(counting, "COUNTED_CHARACTERS", 3_000)
    monkeypatch.setattr(tokenise, "JOB_CHARACTERS", 1_000)
    monkeypatch.setattr(dividing, "ROUND_CHARACTERS", 8_000)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three files of one document a line, the second packed, with words that no vocabulary has."""
    rng, folder = random.Random(1), tmp_path_factory.mktemp("texts")
    paths = [folder / name for name in ("a.txt", "b.txt.gz", "c.txt")]
    for path, documents in zip(paths, (300, 170, 5), strict=True):
        words = [[f"W{int(rng.paretovariate(0.6))}é" for _ in range(rng.randrange(1, 30))] for _ in range(documents)]
        data = "".join(" ".join(line) + ". Yes\n" for line in words).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return paths


def prepared(ranks: Any, paths: list[Path], cache: Path, *, valid: list[Path] | None = None, workers: int = 1) -> None:
    """What the first process does before its first step, and then ends; the others do what they are told."""
    if not ranks.launch.is_first:
        result_of(join_run(Workplace(cache, workers, ranks)))
        return
    machines = OtherMachines(ranks, workers, [str(path) for path in paths], valid and [str(path) for path in valid])
    options: dict[str, Any] = {"cache": cache, "workers": workers, "machines": machines}
    counter = result_of(count_words(paths, LINES, lowercase=True, **options))
    pieces = result_of(learn_pieces(paths, LINES, size=200, lowercase=True, exact=False, sample_bytes=9_000, **options))
    for tokenizer in (WordTokenizer(counter.vocabulary(50, 1)), pieces):
        result_of(prepare(paths, valid, tokenizer, LINES, max_sentence=7, **options))


def files(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in sorted(cache.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("machines", [2, 3])
def test_every_machine_has_the_bytes_of_one(
    texts: list[Path], tmp_path: Path, in_threads: Any, machines: int, held_out: bool
) -> None:
    paths, valid = (texts[:2], texts[2:]) if held_out else (texts, None)
    prepared(Alone(), paths, tmp_path / "alone", valid=valid)
    caches = [tmp_path / str(machine) for machine in range(machines)]
    in_threads(machines, lambda ranks: prepared(ranks, paths, caches[ranks.launch.machine], valid=valid), per_machine=1)
    whole = files(tmp_path / "alone")
    assert {name.split("/")[0] for name in whole} == {"shards", "words", "wordpiece"}
    assert files(caches[0]) == whole
    shards = {name: content for name, content in whole.items() if name.startswith("shards")}
    assert all(files(cache) == shards for cache in caches[1:])


def test_a_shared_cache_is_written_once_and_by_workers_too(
    texts: list[Path], tmp_path: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(Alone(), texts, tmp_path / "alone")
    built: list[str] = []
    make = tokenise.make_shards
    monkeypatch.setattr(
        "headstart.pretraining.dividing.make_shards", lambda *given: built.append("again") or make(*given)
    )
    # Two processes on each of two machines, whose first ones have unequal numbers of workers.
    in_threads(
        4,
        lambda ranks: prepared(ranks, texts, tmp_path / "shared", workers=1 + (ranks.launch.machine == 1)),
        per_machine=2,
    )
    assert files(tmp_path / "shared") == files(tmp_path / "alone")
    assert not built


def ends_of(in_threads: Any, work: Callable[[Any], None], machines: int = 2) -> list[str]:
    """How each of the machines ended: the sentence of its error, or nothing."""

    def guarded(ranks: Any) -> str:
        try:
            work(ranks)
        except EndedElsewhereError:
            return "ended elsewhere"
        except HeadstartError as error:
            if ranks.launch.is_first:
                ranks.board[ENDED] = True
            return str(error)
        return ""

    ends: list[str] = in_threads(machines, guarded, per_machine=1)
    return ends


@pytest.mark.parametrize("stage", ["counting words", "learning WordPiece", "tokenising"])
def test_a_stop_while_text_is_prepared_ends_every_machine(
    texts: list[Path], tmp_path: Path, in_threads: Any, stage: str
) -> None:
    def work(ranks: Any) -> None:
        cache = tmp_path / str(ranks.launch.machine)
        if not ranks.launch.is_first:
            assert result_of(join_run(Workplace(cache, 1, ranks))) is None
            return
        machines = OtherMachines(ranks, 1, [str(path) for path in texts], None)
        options: dict[str, Any] = {"cache": cache, "workers": 1, "machines": machines}
        if stage == "counting words":
            events = count_words(texts, LINES, lowercase=True, **options)
        elif stage == "learning WordPiece":
            events = learn_pieces(texts, LINES, size=200, lowercase=True, exact=False, **options)
        else:
            counter = WordCounter(lowercase=True)
            counter.add({"yes": 5})
            tokenizer = WordTokenizer(counter.vocabulary(None, 1))
            events = prepare(texts, None, tokenizer, LINES, max_sentence=None, **options)
        while next(events).stage != stage:
            pass
        next(events)
        events.close()

    assert ends_of(in_threads, work, machines=3) == ["", "", ""]
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("mistake", ["another text", "a missing file"])
def test_a_text_that_differs_on_one_machine_ends_all_before_the_work(
    texts: list[Path], tmp_path: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    here, found = threading.local(), discover
    monkeypatch.setattr("headstart.pretraining.dividing.discover", lambda sources: found(here.sources or sources))
    wrong = {"another text": [str(texts[0])], "a missing file": [str(tmp_path / "none.txt")]}[mistake]

    def work(ranks: Any) -> None:
        here.sources = wrong if ranks.launch.machine == 1 else None
        prepared(ranks, texts, tmp_path / str(ranks.launch.machine))

    ends = ends_of(in_threads, work, machines=3)
    sentence = {"another text": "not that of the first process", "a missing file": "there is no such file"}[mistake]
    assert ends[0].startswith("Process 1, on machine 1: ")
    assert sentence in ends[0]
    assert ends[1:] == ["ended elsewhere"] * 2
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_a_byte_that_is_not_utf8_is_one_sentence_and_the_end_of_all(
    texts: list[Path], tmp_path: Path, in_threads: Any
) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_bytes(texts[0].read_bytes() + b"caf\xe9\n" + texts[0].read_bytes())
    ends = ends_of(in_threads, lambda ranks: prepared(ranks, [wrong], tmp_path / str(ranks.launch.machine)), machines=3)
    assert "wrong.txt:301: not UTF-8" in ends[0]
    assert ends[1:] == ["ended elsewhere"] * 2


def test_a_machine_that_cannot_write_ends_all_with_its_sentence(
    texts: list[Path], tmp_path: Path, in_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = ShardWriter.add_blocks

    def full(writer: ShardWriter, *blocks: Any) -> None:
        if "machine-1" in str(writer.directory):
            raise DataError("no space left")
        add(writer, *blocks)

    monkeypatch.setattr(ShardWriter, "add_blocks", full)
    ends = ends_of(in_threads, lambda ranks: prepared(ranks, texts, tmp_path / f"machine-{ranks.launch.machine}"), 3)
    assert ends == ["Process 1, on machine 1: no space left", "ended elsewhere", "ended elsewhere"]
    assert not any(path.is_file() for path in tmp_path.rglob("shards/**/*"))
