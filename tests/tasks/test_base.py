from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import ConfigError
from headstart.tasks import TASKS, task_class
from headstart.tasks.base import of_class, score_lines


def test_score_lines_by_hand() -> None:
    rows = {"PER": {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "gold": 1842, "predicted": 921}}
    assert score_lines("type", rows, ("gold", "predicted")) == [
        "type  precision    recall        F1      gold  predicted",
        "PER     100.0 %    50.0 %    66.7 %     1,842        921",
    ]


def test_the_columns_stand_under_their_names_whatever_the_labels() -> None:
    row = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "examples": 7}
    head, *lines = score_lines("label", {"a": row, "a very long label": row}, ("examples",))
    assert {len(line) for line in lines} == {len(head)}


def test_what_belongs_to_another_task_is_named() -> None:
    assert of_class(str, "text") == "text"
    with pytest.raises(ConfigError, match="needs a str; got int"):
        of_class(str, 3)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_reads_its_own_lines(name: str, tiny_examples: dict[str, list[Any]], tmp_path: Path) -> None:
    task, examples = task_class(name), tiny_examples[name]
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(f"{json.dumps(task.line(example))}\n" for example in examples))
    found = task.read(path, task.Input())
    assert [task.key(example) for example in found] == [task.key(example) for example in examples]
    assert [task.gold(example) for example in found] == [task.gold(example) for example in examples]


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_is_asked_with_plain_texts(name: str) -> None:
    """Texts of two sentences, with a character that JSON can hold and UTF-8 cannot."""
    task = task_class(name)
    examples = task.of_texts({asked: f"Ada met Eve \ud800 . The {asked} was long ." for asked in task.asks})
    keys = " ".join(task.key(example) for example in examples)
    assert all(f"The {asked} was long" in keys for asked in task.asks)
    assert "\ud800" not in keys
    assert all(task.gold(example) is None for example in examples)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_takes_a_blank_text(name: str) -> None:
    task = task_class(name)
    assert all(task.is_empty(example) for example in task.of_texts(dict.fromkeys(task.asks, " ")))
