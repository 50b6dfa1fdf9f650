from __future__ import annotations

import json
from pathlib import Path

import pytest

from headstart.comparison.data import baseline_of, check_labels, facts_of, label_counts, read_data
from headstart.errors import ConfigError, DataError
from headstart.report.results import DataFacts
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.examples import content_of
from headstart.tasks.reading import ExamplesConfig
from headstart.tasks.tag import Tag


def write(path: Path, examples: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in examples), encoding="utf-8")
    return path


def test_budgets_are_sorted_and_folded_and_all_is_a_number() -> None:
    assert label_counts(["all", 50, 10, 50, 200], 200, Path("t.csv")) == [10, 50, 200]
    with pytest.raises(DataError, match=r"t\.csv: has 40 examples, fewer than the 50"):
        label_counts([10, 50], 40, Path("t.csv"))


@pytest.mark.parametrize("labels", [[], [1], ["some"], [True], [50.0]])
def test_budgets_that_are_none(labels: list) -> None:
    with pytest.raises(ConfigError, match="--labels"):
        check_labels(labels)


def test_every_example_of_any_draw_and_of_dev_is_listed_once(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", [(f"text {i}", str(i % 2)) for i in range(20)])
    dev = write(tmp_path / "dev.csv", [("text 1", "1"), ("other", "0")])
    data = read_data(Classify, train, dev, ExamplesConfig(), [4, 8], [0, 1])
    assert data.labels == [4, 8]
    assert {len(data.draws[8, seed]) for seed in (0, 1)} == {8}
    drawn = {example.text for examples in data.draws.values() for example in examples}
    assert sorted(example.text for example in data.examples()) == sorted([*drawn, "text 1", "other"])
    assert data.gold_note() == {"names": ["0", "1"], "gold": ["1", "0"]}
    assert data.notices == ["1 dev example also stands in train."]
    assert facts_of(data.task, data.dev, dev) == DataFacts("dev.csv", 2, {"0": 1, "1": 1})


def test_the_baseline_is_the_most_frequent_label_of_train_scored_on_dev(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", [("a", "no"), ("b", "no"), ("c", "yes"), ("d", "no"), ("e", "yes")])
    dev = write(tmp_path / "dev.csv", [("f", "yes"), ("g", "no"), ("h", "yes"), ("i", "yes")])
    baseline = baseline_of(read_data(Classify, train, dev, ExamplesConfig(), [4], [0]))
    assert (baseline.title, baseline.score) == ("Always 'no'", 0.25)
    assert baseline.counts is not None
    assert baseline.counts.tolist() == [[0, 1], [1, 1], [0, 1], [0, 1]]


def test_content_changes_with_a_text_and_with_a_label() -> None:
    task = Classify(("0", "1"))
    given = [("a", "0"), ("b", "0"), ("a", "1"), ("a", "0")]
    assert len({content_of(task, [TextExample(text, label)]) for text, label in given}) == 3


def test_sentences_that_differ_only_in_where_words_end_are_both_listed(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    rows = [(["New York"], ["B-LOC"]), (["New", "York"], ["B-LOC", "I-LOC"]), (["fell"], ["O"])]
    path.write_text("".join(json.dumps({"words": words, "tags": tags}) + "\n" for words, tags in rows))
    data = read_data(Tag, path, path, Tag.Input(), ["all"], [0])
    assert {example.words for example in data.examples()} == {("New York",), ("New", "York"), ("fell",)}
