"""Predictions as lines."""

from __future__ import annotations

import csv
import datetime
import io
import json
from pathlib import Path

from headstart.tasks.classify import Classify, Prediction, TextExample
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample, PairInputConfig, read_pairs
from headstart.tasks.prediction_writers import CsvLines, JsonLines, TabLines

TEXTS, PAIRS = Classify(("bad", "good")), Pair(("bad", "good"))
GOOD, BAD = Prediction("good", [0.1, 0.9]), Prediction("bad", [0.75, 0.25])


def test_values_that_json_has_no_form_for_become_strings() -> None:
    record = {"text": "fine", "seen": datetime.date(2024, 2, 29)}
    example = TextExample("fine", None, record=record)
    (line,) = JsonLines(TEXTS).lines([(example, GOOD)]).splitlines()
    assert json.loads(line)["seen"] == "2024-02-29"


def test_tab_lines_have_a_column_for_each_text() -> None:
    assert TabLines(TEXTS).lines([(TextExample("so\tfine\r\n"), GOOD)]) == "good\t0.9000\tso fine \n"
    pairs = [(PairExample("a\tb", "c\nd"), BAD), (PairExample("", ""), PAIRS.empty_answer(PairExample("", "")))]
    assert TabLines(PAIRS).lines(pairs) == "bad\t0.7500\ta b\tc d\n\t\t\t\n"


def test_csv_has_the_columns_of_the_input_or_the_texts() -> None:
    def rows(written: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(written)))

    writer = CsvLines(PAIRS)
    assert rows(writer.lines([(PairExample('a, "b"', "c\nd"), GOOD)])) == [
        ["first", "second", "predicted", "probability"],
        ['a, "b"', "c\nd", "good", "0.9000"],
    ]
    assert rows(writer.lines([(PairExample("e", "f"), BAD)])) == [["e", "f", "bad", "0.7500"]]
    record = {"premise": "a", "hypothesis": "b", "id": 7}
    assert rows(CsvLines(PAIRS).lines([(PairExample("a", "b", record=record), GOOD)])) == [
        ["premise", "hypothesis", "id", "predicted", "probability"],
        ["a", "b", "7", "good", "0.9000"],
    ]
    assert rows(CsvLines(TEXTS).lines([(TextExample("x"), BAD)]))[0] == ["text", "predicted", "probability"]


def test_json_keeps_the_record_but_not_over_the_answer() -> None:
    record = {"sentence1": "a", "sentence2": "b", "label": "old", "first": 0, "id": 7}
    assert PAIRS.as_json(PairExample("a", "b", record=record), GOOD) == {
        "label": "good",
        "probabilities": {"bad": 0.1, "good": 0.9},
        "first": "a",
        "second": "b",
        "sentence1": "a",
        "sentence2": "b",
        "id": 7,
    }
    assert list(TEXTS.as_json(TextExample("a", record={"first": 0}), GOOD)) == [
        "label",
        "probabilities",
        "text",
        "first",
    ]


def test_predicted_pairs_in_json_can_be_read_as_labelled_ones(tmp_path: Path) -> None:
    examples = [PairExample("a\tb", 'c\n"d"'), PairExample("e", "f")]
    path = tmp_path / "predicted.jsonl"
    path.write_text(JsonLines(PAIRS).lines(zip(examples, [GOOD, BAD], strict=True)))
    assert read_pairs(path, PairInputConfig()).examples == [
        PairExample("a\tb", 'c\n"d"', "good"),
        PairExample("e", "f", "bad"),
    ]
