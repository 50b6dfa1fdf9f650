from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headstart.claims.cutting import Limits, spread_out
from headstart.claims.data import open_data
from headstart.claims.layouts import ROLES, TOGETHER, Role, found_in, where_to_put
from headstart.config import resolve
from headstart.errors import DataError
from headstart.progress import result_of
from headstart.tasks import task_class

LIMITS = Limits(dev=12, text_words=600, valid_words=200)


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_role_of_a_folder_is_cut_to_size_in_files_that_tasks_read(data_folder: Path, tmp_path: Path) -> None:
    data = result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path))
    assert list(data.tasks) == ["sentiment", "pos", "ner"]
    for task in data.tasks.values():
        kind = task_class(task.task)
        train, dev = (kind.read(path, kind.Input()) for path in (task.train, task.dev))
        assert (len(train), len(dev)) == (40, 12)
    assert data.tasks["sentiment"].train.name == "sentiment-train.jsonl"
    assert {line["label"] for line in lines_of(data.tasks["sentiment"].dev)} == {"negative", "positive"}
    pos, ner = (lines_of(data.tasks[role].dev)[0] for role in ("pos", "ner"))
    assert pos["words"] == ner["words"]
    assert pos["tags"][-1] == "."
    assert ner["tags"][-1] == "O"
    assert data.text is not None
    train_words, valid_words = (len(path.read_text().split()) for path in (data.text.train, data.text.valid))
    assert 600 <= train_words < 700
    assert 200 <= valid_words < 300


@pytest.mark.parametrize("role", [role for role, kind in ROLES.items() if kind.task is not None])
def test_what_is_cut_is_read_back_equal(role: Role, data_folder: Path, tmp_path: Path) -> None:
    found = found_in(data_folder)[role]
    files = result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path, [role])).tasks[role]
    task = task_class(files.task)
    given = task.read(found.train, resolve(task.Input, found.input))
    written = task.read(files.train, task.Input())
    assert len(written) >= 10
    for part in (task.key, task.gold, lambda example: list(task.words(example))):
        assert [part(example) for example in written] == [part(example) for example in given]


def test_only_what_is_asked_for_is_cut(data_folder: Path, tmp_path: Path) -> None:
    data = result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path, ["ner", "chains"]))
    assert list(data.tasks) == ["ner", "chains"]
    written = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert written == ["chains-dev.jsonl", "chains-train.jsonl", "ner-dev.jsonl", "ner-train.jsonl"]


def test_roles_with_a_key_of_their_own_leave_that_of_the_others_as_it_is(data_folder: Path, tmp_path: Path) -> None:
    alone = result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path, TOGETHER))
    limits = replace(LIMITS, dev_by_role={"chains": 2})
    some = result_of(open_data(data_folder, tmp_path, limits, tmp_path, ["ner", "chains"]))
    assert some.key == alone.key == some.key_of("ner") != some.key_of("chains")
    assert len(lines_of(some.tasks["chains"].dev)) == 2
    other = result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path, ["chains"]))
    assert other.key_of("chains") != some.key_of("chains")


def test_a_folder_of_documents_and_an_unpacked_file_serve_too(data_folder: Path, tmp_path: Path) -> None:
    for part in ("train", "dev"):
        (tmp_path / "litbank_coref" / part).mkdir(parents=True)
        text = gzip.decompress((data_folder / "ontogum_coref" / f"{part}.conll.gz").read_bytes())
        (tmp_path / "litbank_coref" / part / "all.conll").write_bytes(text)
        (tmp_path / "squad").mkdir(exist_ok=True)
        text = gzip.decompress((data_folder / "squad" / f"squad1.1-{part}.json.gz").read_bytes())
        (tmp_path / "squad" / f"squad1.1-{part}.json").write_bytes(text)
    data = result_of(open_data(tmp_path, tmp_path / "out", LIMITS, tmp_path, ROLES))
    assert list(data.tasks) == ["questions", "chains"]
    (tmp_path / "litbank_coref" / "dev" / "more.conll").write_bytes(b"")
    again = found_in(tmp_path)["chains"]
    assert again.as_key() != found_in(data_folder)["chains"].as_key()


def test_the_same_folder_is_cut_once_and_another_size_beside_it(data_folder: Path, tmp_path: Path) -> None:
    first = result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path))
    written = first.tasks["ner"].dev.stat().st_mtime_ns
    assert result_of(open_data(data_folder, tmp_path, LIMITS, tmp_path)) == first
    assert first.tasks["ner"].dev.stat().st_mtime_ns == written
    other = result_of(open_data(data_folder, tmp_path, Limits(6, 600, 200), tmp_path))
    assert other.key != first.key
    assert len(lines_of(other.tasks["ner"].dev)) == 6


def test_changed_data_have_another_key(data_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(data_folder, tmp_path / "data")
    first = result_of(open_data(tmp_path / "data", tmp_path / "out", LIMITS, tmp_path))
    dev = tmp_path / "data" / "sst" / "dev.txt"
    dev.write_text(dev.read_text() + "(1 (2 so) (1 dull))\n")
    assert result_of(open_data(tmp_path / "data", tmp_path / "out", LIMITS, tmp_path)).key != first.key


def test_a_folder_with_some_of_the_data_serves_some_roles(data_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(data_folder / "sst", tmp_path / "data" / "sst")
    data = result_of(open_data(tmp_path / "data", tmp_path, LIMITS, tmp_path))
    assert [role for role in ("sentiment", "pos", "ner", "text") if data.has(role)] == ["sentiment"]  # type: ignore[arg-type]


def test_a_folder_with_nothing_says_what_it_might_hold(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"put sst/train\.txt and sst/dev\.txt into the folder"):
        found_in(tmp_path)
    with pytest.raises(DataError, match="there is no such folder"):
        found_in(tmp_path / "none")


def test_the_sentence_of_a_missing_role_names_its_files() -> None:
    assert where_to_put(["text"]) == (
        "unlabelled text: put lm_imdb_unsup/train.txt.gz and lm_imdb_unsup/valid.txt.gz into the folder given as --data"
    )


def test_examples_are_taken_from_the_whole_list() -> None:
    assert spread_out(range(100), 5) == [0, 25, 50, 74, 99]
    assert spread_out(range(3), 5) == [0, 1, 2]
