from __future__ import annotations

import json
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.labels import unify_labels
from headstart.tasks.reading import ExamplesConfig


def read_examples(path: str | Path, config: ExamplesConfig = ExamplesConfig()) -> list[TextExample]:  # noqa: B008
    return Classify.read(Path(path), config)


def examples_of(texts: list[str], labels: list[str]) -> list[TextExample]:
    return [TextExample(text, label) for text, label in zip(texts, labels, strict=True)]


def unified(*labels: str) -> list[str]:
    return [label for _, _, label in unify_labels((f"line {n}", "text", label) for n, label in enumerate(labels, 1))]


def test_one_spelling_for_each_whole_number():
    assert unified("1", "1.0", "0.0", "-2.00") == ["1", "1", "0", "-2"]


def test_labels_written_in_one_way_stay_as_they_are():
    for labels in (["1.0", "0.0"], ["1", "2"], ["1.0", "1.5"], ["pos", "neg"], ["True", "False"], ["yes", ""]):
        assert unified(*labels) == labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "nan", "0"], ["1", "", "0"]),
        (["1.0", "NaN", "0.0"], ["1.0", "", "0.0"]),
        (["pos", "NaN"], ["pos", ""]),
        (["eng", "nan", "fra"], ["eng", "nan", "fra"]),  # Min Nan Chinese
        (["nan"], [""]),
    ],
)
def test_nan_is_a_missing_label(labels, expected):
    assert unified(*labels) == expected


@pytest.mark.parametrize(("boolean", "bit"), [("true", "1"), ("False", "0"), ("TRUE", "0.0")])
def test_true_and_1_are_not_mixed(boolean, bit):
    with pytest.raises(DataError, match=rf"line 3: has the label '{boolean}', but line 2 has '{bit}'\."):
        unified("x", bit, boolean)


@pytest.mark.parametrize("missing", ["NaN", "null", '"NaN"', '"nan"', '""'])
def test_a_missing_label_of_a_file_is_an_error_with_its_line(missing, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": 1}\n' + f'{{"text": "b", "label": {missing}}}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: the label is empty"):
        read_examples(path)


def test_mixed_types_in_json(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": "a", "label": label}) + "\n" for label in [1, "1", 1.0, "1.0", 0]))
    assert [example.label for example in read_examples(path)] == ["1", "1", "1", "1", "0"]
    path.write_text('{"text": "a", "label": true}\n{"text": "b", "label": 1}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:1: has the label 'true', but .*a\.jsonl:2 has '1'"):
        read_examples(path)


def test_nan_in_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": [1.0, float("nan")]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet, row 2: the label is empty"):
        read_examples(tmp_path / "a.parquet")
