"""Files of sentence pairs, labelled ones and those to be labelled."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from headstart.config import resolve
from headstart.errors import ConfigError, DataError
from headstart.tasks.pair_reading import (
    LABEL_COLUMNS,
    TEXT_PAIRS,
    PairExample,
    PairInputConfig,
    count_without_label,
    read_pair_inputs,
    read_pairs,
)

DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = {
    "snli/snli_1.0_train.jsonl.gz": {"entailment": 7203, "contradiction": 7304, "neutral": 7098},
    "snli/snli_1.0_dev.jsonl": {"entailment": 3329, "contradiction": 3278, "neutral": 3235},
    "sick/SICK_train.txt": {"NEUTRAL": 2536, "ENTAILMENT": 1299, "CONTRADICTION": 665},
    "sick/SICK_trial.txt": {"NEUTRAL": 282, "ENTAILMENT": 144, "CONTRADICTION": 74},
}
CONFIG = PairInputConfig()
HARD = [
    PairExample('He said "hi",\nthen left.', "Someone; left", "yes"),
    PairExample("zweite, Zeile\tmit Tab", "三", "no"),
    PairExample("-", '"', "yes"),
]


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_pairs(path: Path, examples: list[PairExample]) -> Path:
    """As a user would: each format by its own rules, with a column that no reader asks for."""
    name = path.name.removesuffix(".gz")
    rows = [{"id": n, **e.texts, "label": e.label} for n, e in enumerate(examples)]
    if name.endswith(".jsonl"):
        return write(path, "".join(json.dumps(row) + "\n" for row in rows))
    if name.endswith(".csv"):
        file = io.StringIO(newline="")
        csv.writer(file).writerows([list(rows[0]), *(row.values() for row in rows)])
        return write(path, file.getvalue())
    return write(path, "".join("\t".join(map(str, row)) + "\n" for row in [list(rows[0]), *(r.values() for r in rows)]))


def read(path: Path, config: PairInputConfig = CONFIG) -> list[PairExample]:
    return read_pairs(path, config).examples


def inputs(path: Path | str, config: PairInputConfig = CONFIG) -> list[PairExample]:
    return list(read_pair_inputs(str(path), config))


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_their_labels_and_round_trip_in_every_format(name: str, tmp_path: Path) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"shared/data/{name} is not there")
    found = read_pairs(path, CONFIG)
    assert Counter(example.label for example in found.examples) == REAL[name]
    assert found.without_label == count_without_label(path, CONFIG) == 0
    for suffix in (".jsonl", ".tsv", ".csv.gz", ".txt"):
        assert read(write_pairs(tmp_path / f"again{suffix}", found.examples)) == found.examples
    texts = [PairExample(example.first, example.second) for example in found.examples]
    assert [PairExample(e.first.strip(), e.second.strip()) for e in inputs(path)] == texts
    lines = "".join(f"{example.first}\t{example.second}\n" for example in texts)
    assert inputs(write(tmp_path / "lines", lines)) == texts


# --- labelled pairs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.gz"])
def test_breaks_tabs_and_quotation_marks_round_trip(suffix: str, tmp_path: Path) -> None:
    path = write_pairs(tmp_path / f"pairs{suffix}", HARD)
    assert read(path) == HARD
    assert [found.where for found in read(write_pairs(tmp_path / "a.jsonl", HARD))] == [
        f"{tmp_path / 'a.jsonl'}:{line}" for line in (1, 2, 3)
    ]


def test_parquet(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"premise": ["a", "b"], "idx": [1, 2], "hypothesis": ["c", "d"], "label": [2, 0]}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [PairExample("a", "c", "2"), PairExample("b", "d", "0")]
    assert [e.record for e in inputs(tmp_path / "a.parquet")] == [
        {"premise": "a", "hypothesis": "c", "idx": 1, "label": 2},
        {"premise": "b", "hypothesis": "d", "idx": 2, "label": 0},
    ]


@pytest.mark.parametrize("number", range(len(TEXT_PAIRS)))
def test_the_usual_columns_in_their_order_whatever_their_capitals(number: int, tmp_path: Path) -> None:
    """Of all the columns from here on, those of the first pair hold the texts."""
    names = [name.upper() for pair in reversed(TEXT_PAIRS[number:]) for name in pair]
    wanted = {TEXT_PAIRS[number][0].upper(): "one", TEXT_PAIRS[number][1].upper(): "two"}
    row = [wanted.get(name, "other") for name in names]
    path = write(tmp_path / "a.csv", f"{','.join(names)},Label\n{','.join(row)},x\n")
    assert read(path) == [PairExample("one", "two", "x")]


@pytest.mark.parametrize("number", range(len(LABEL_COLUMNS)))
def test_the_usual_labels_in_their_order(number: int, tmp_path: Path) -> None:
    names = LABEL_COLUMNS[number:]
    labels = ",".join("yes" if name == names[0] else "no" for name in reversed(names))
    path = write(tmp_path / "a.csv", f"premise,hypothesis,{','.join(reversed(names))}\na,b,{labels}\n")
    assert read(path) == [PairExample("a", "b", "yes")]


def test_an_exact_name_goes_first_and_half_a_pair_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "Sentence1,Sentence2,sentence1,premise,hypothesis,label\nno,no,no,a,b,x\n")
    assert read(path) == [PairExample("a", "b", "x")]
    path = write(tmp_path / "b.csv", "sentence1,text1,text2,label\nno,a,b,x\n")
    assert read(path) == [PairExample("a", "b", "x")]


def test_columns_and_the_separator_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "sentence1|sentence2|label|Left|right|same\nno|no|no|a, b|c|1\n")
    config = PairInputConfig(text_field="left", second_field="right", label_field="same", separator="|")
    assert read(path, config) == [PairExample("a, b", "c", "1")]
    assert [(e.first, e.second) for e in inputs(path, config)] == [("a, b", "c")]
    path = write(tmp_path / "a.txt", "left;right;same\na;b;1\n")
    config = PairInputConfig(text_field="right", second_field="left", label_field="same", separator=";")
    assert read(path, config) == [PairExample("b", "a", "1")]


def test_pairs_whose_annotators_did_not_agree_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [("-", "a"), ("yes", "b"), (" - ", ""), ("no", "c")]
    lines = "".join(json.dumps({"gold_label": g, "sentence1": t, "sentence2": "z"}) + "\n" for g, t in rows)
    path = write(tmp_path / "a.jsonl", lines)
    found = read_pairs(path, CONFIG)
    assert found.examples == [PairExample("b", "z", "yes"), PairExample("c", "z", "no")]
    assert found.without_label == count_without_label(path, CONFIG) == 2
    path = write(tmp_path / "a.txt", "Gold_Label\tsentence1\tsentence2\n-\ta\tb\nyes\tc\td\n")
    assert read_pairs(path, CONFIG).without_label == count_without_label(path, CONFIG) == 1
    only = write(tmp_path / "b.csv", "gold_label,premise,hypothesis\n-,a,b\n")
    with pytest.raises(DataError, match=r"b\.csv: holds no pair besides 1 without a label \('-'\)"):
        read_pairs(only, CONFIG)


def test_elsewhere_a_dash_is_a_class(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "premise,hypothesis,label\na,b,-\nc,d,+\n")
    assert [example.label for example in read(path)] == ["-", "+"]
    assert count_without_label(path, CONFIG) == 0


def test_one_spelling_for_each_label(tmp_path: Path) -> None:
    labels = [1, "1.0", 0, " 0 "]
    lines = "".join(json.dumps({"text_a": "a", "text_b": "b", "is_duplicate": label}) + "\n" for label in labels)
    assert [example.label for example in read(write(tmp_path / "a.jsonl", lines))] == ["1", "1", "0", "0"]
    # A pair without a label does not keep the other labels from being numbers.
    lines = "gold_label,premise,hypothesis\n1,a,b\n-,c,d\nnan,e,f\n"
    with pytest.raises(DataError, match=r"b\.csv:4: the label is empty"):
        read(write(tmp_path / "b.csv", lines))


WRONG = [
    ("a.csv", b"a,b\n1,2\n", r"a\.csv:1: has no two columns such as sentence1/sentence2, .*; there are: a, b\. Name .* "
     r"--text-field and --second-field"),
    ("a.csv", b"premise,label\n1,2\n", r"a\.csv:1: has no two columns .*there are: premise, label\."),
    ("a.csv", b"first,second\n1,2\n", r"a\.csv:1: has no column 'gold_label' or .*first, second\..*--label-field"),
    ("a.jsonl", b'{"first": "a", "second": "b"}\n', r"a\.jsonl:1: has no column 'gold_label'.*--label-field"),
    ("a.jsonl", b'{"first": "a", "second": "b", "label": 1}\n{"first": "b"}\n', r"a\.jsonl:2: has no key 'second'"),
    ("a.csv", b"first,second,label\na,b,1\n ,b,1\n", r"a\.csv:3: the first text is empty"),
    ("a.csv", b"first,second,label\na,b,1\nb, ,1\n", r"a\.csv:3: the second text is empty"),
    ("a.csv", b"first,second,label\na,b,1\nb,c,\n", r"a\.csv:3: the label is empty"),
    ("a.jsonl", b'{"first": "a", "second": null, "label": 1}\n', r"a\.jsonl:1: the second text is empty"),
    ("a.jsonl", b'{"first": 3, "second": "b", "label": 1}\n', r"a\.jsonl:1: 'first' must be text, got 3.*--text-field"),
    ("a.jsonl", b'{"first": "a", "second": 3, "label": 1}\n', r"1: 'second' must be text, got 3.*--second-field"),
    ("a.jsonl", b'{"first": "a", "second": "b", "label": [1]}\n', r"1: 'label' must be a class.*--label-field"),
    ("a.csv", b"first,second,label\na, b,c,1\n", r"a\.csv:2: has 4 columns, but the first line names 3"),
    ("a.csv", b"First,second,FIRST,label\na,b,c,1\n", r"a\.csv:1: more than one column is called 'first'"),
    ("a.csv", b"first;x,second;y,label\na,b,c\n", r"a\.csv:1: has no two columns.*separated by ';'\?.*--separator"),
    ("a.txt", b"A line of text.\n", r"a\.txt:1: expected the names of columns, separated by tabs.*'A line of text\.'"),
    ("a.txt", b"", r"a\.txt:1: expected the names of columns"),
    ("a.csv", b"", r"a\.csv: holds no pair\. Give a file"),
    ("a.csv", b"first,second,label\n", r"a\.csv: holds no pair\."),
    ("a.json", b"[]", r"a\.json: files of this kind hold no pairs; known are \.csv, \.csv\.gz, .*\.txt\.gz"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_pairs(write(tmp_path / name, content), CONFIG)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.csv: there is no such file"):
        read_pairs(tmp_path / "absent.csv", CONFIG)
    with pytest.raises(DataError, match="is a folder; give a file of pairs"):
        read_pairs(tmp_path, CONFIG)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text_field": "a"}, "--text-field names one of two texts; name the other with --second-field"),
        ({"second_field": "a"}, "--second-field names one of two texts; name the other with --text-field"),
        ({"text_field": "a", "second_field": "a"}, "--text-field and --second-field must differ; got 'a' for both"),
        (
            {"text_field": "a", "second_field": "b", "label_field": "b"},
            "--second-field and --label-field must differ; got 'b' for both",
        ),
        ({"separator": ";;"}, "--separator is one character"),
    ],
)
def test_config_is_checked(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(PairInputConfig, given)


def test_one_column_is_not_two(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "Left,right,label\na,b,1\n")
    with pytest.raises(DataError, match=r"a\.csv:1: the column 'Left' cannot be both first text and second text"):
        read_pairs(path, PairInputConfig(text_field="left", second_field="LEFT"))
    with pytest.raises(DataError, match=r"cannot be both second text and label; there are: Left, right, label\."):
        read_pairs(path, PairInputConfig(text_field="left", second_field="right", label_field="RIGHT"))
    with pytest.raises(DataError, match=r"no column 'middle'; there are: Left, right, label.*--second-field"):
        read_pairs(path, PairInputConfig(text_field="left", second_field="middle"))


# --- pairs to be labelled ---------------------------------------------------------------------------------------------


def given_on_standard_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.gz"])
def test_tables_and_json_lines_keep_their_other_columns(suffix: str, tmp_path: Path) -> None:
    found = inputs(write_pairs(tmp_path / f"pairs{suffix}", HARD))
    assert found == [PairExample(example.first, example.second) for example in HARD]
    assert [str(example.record["id"]) for example in found if example.record] == ["0", "1", "2"]
    assert all(example.where.startswith(f"{tmp_path / 'pairs'}{suffix}:") for example in found)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_of_two_texts_keep_the_place_of_blank_ones(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{mark}a "b\tc d\r\n\n \t \ne\tf'
    expected = [PairExample('a "b', "c d"), PairExample("", ""), PairExample("", ""), PairExample("e", "f")]
    path = write(tmp_path / "a.txt", text)
    assert inputs(path) == expected
    assert [(e.where, e.record) for e in inputs(path)] == [(f"{path}:{line}", None) for line in (1, 2, 3, 4)]
    given_on_standard_input(monkeypatch, text)
    assert inputs("-") == expected


@pytest.mark.parametrize("header", ["Premise\thypothesis\tid", "id\tpremise\tHypothesis"])
def test_a_header_names_the_columns(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "\t".join({"premise": "a", "hypothesis": "b", "id": "7"}[name.lower()] for name in header.split("\t"))
    given_on_standard_input(monkeypatch, f"{header}\n{row}\n")
    (found,) = inputs("-")
    assert found == PairExample("a", "b")
    assert found.record == {name: {"p": "a", "h": "b", "i": "7"}[name[0].lower()] for name in header.split("\t")}
    assert found.where == "standard input:2"


def test_columns_of_standard_input_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = PairInputConfig(text_field="b", second_field="a")
    given_on_standard_input(monkeypatch, "a\tb\n1\t2\n")
    assert inputs("-", config) == [PairExample("2", "1")]
    given_on_standard_input(monkeypatch, '{"a": "1", "b": "2"}\n{"a": "3", "b": "4", "c": 5}\n')
    assert inputs("-", config) == [PairExample("2", "1"), PairExample("4", "3")]
    given_on_standard_input(monkeypatch, "one\ttwo\n")
    with pytest.raises(DataError, match=r"standard input:1: has no column 'b'; there are: one, two"):
        inputs("-", config)


def test_an_empty_file_holds_no_pairs(tmp_path: Path) -> None:
    assert inputs(write(tmp_path / "a.txt", "")) == []


WRONG_INPUTS = [
    ("a.txt", b"a\tb\nonly one\n", r"a\.txt:2: expected two texts with one tab between them, got 'only one'\. Put"),
    ("a.txt", b"a\tb\n\na\tb\tc\n", r"a\.txt:3: expected two texts with one tab .*got 'a\\tb\\tc'.*JSON lines"),
    ("a.txt", b"one\n", r"a\.txt:1: expected two texts"),
    ("a.txt", b"first\tsecond\na\n", r"a\.txt:2: has 1 columns, but 'second' is column 2 of 2"),
    ("a.txt", b"first\tsecond\na\tb\tc\n", r"a\.txt:2: has 3 columns, but the first line names 2"),
    ("a.tsv", b"a\tb\n", r"a\.tsv:1: has no two columns such as .*--text-field and --second-field"),
    ("a.jsonl", b'{"first": "a"}\n', r"a\.jsonl:1: has no two columns"),
    ("a.jsonl", b'{"first": "a", "second": "b"}\n{"first": "a"}\n', r"a\.jsonl:2: has no key 'second'"),
    ("a.jsonl", b'{"first": "a", "second": 2}\n', r"a\.jsonl:1: 'second' must be text, got 2.*--second-field"),
    ("a.csv", b"first,second,n,n\na,b,1,2\n", r"a\.csv:1: more than one column is called 'n'"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG_INPUTS)
def test_what_is_wrong_with_inputs_is_said_with_its_place(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        inputs(write(tmp_path / name, content))
