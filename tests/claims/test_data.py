from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from headstart.claims.data import Limits, found_in, open_data, spread_out, where_to_put
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
