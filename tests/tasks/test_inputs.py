from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.tasks.inputs import Input, read_inputs


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def texts(path: Path | str, *arguments: str | None) -> list[str]:
    return [found.text for found in read_inputs(path, *arguments)]


ROWS = [{"id": "1", "text": 'He said "hi",\nthen left.'}, {"id": "2", "text": "三"}]
FILES = {
    "a.csv": 'id,text\n1,"He said ""hi"",\nthen left."\n2,三\n',
    "b.csv": 'id;text\n1;"He said ""hi"",\nthen left."\n2;三\n',
    "c.csv": 'id\ttext\n1\t"He said ""hi"",\nthen left."\n2\t三\n',
    "a.jsonl": "".join(json.dumps(row) + "\n\n" for row in ROWS),
    "lines": "".join(json.dumps(row) + "\n" for row in ROWS),
    "a.txt": "".join(json.dumps(row) + "\n" for row in ROWS),
}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", FILES)
def test_tables_and_json_lines_keep_their_other_columns(name, packed, mark, tmp_path):
    found = list(read_inputs(write(tmp_path / f"{name}{packed}", mark + FILES[name])))
    assert [row.record for row in found] == ROWS
    assert [row.text for row in found] == [row["text"] for row in ROWS]
    assert all(row.where.startswith(f"{tmp_path / name}{packed}:") for row in found)


def test_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"n": [1, 2], "review": ["a", None]}), tmp_path / "a.parquet")
    found = list(read_inputs(tmp_path / "a.parquet"))
    assert [(row.text, row.record) for row in found] == [
        ("a", {"review": "a", "n": 1}),
        ("", {"review": None, "n": 2}),
    ]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_plain_lines_keep_the_place_of_blank_ones(mark, tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", f"{mark}one\r\n\n \nfour")
    expected = [Input(f"{path}:{n}", text, None) for n, text in enumerate(["one", "", " ", "four"], 1)]
    assert list(read_inputs(path)) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert texts("-") == ["one", "", " ", "four"]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_json_lines_from_standard_input(mark, monkeypatch):
    given = f'{mark}{{"body": "one", "n": 1}}\n{{"body": "two", "m": 2}}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert [(row.where, row.text, row.record) for row in read_inputs("-", "body")] == [
        ("standard input:1", "one", {"body": "one", "n": 1}),
        ("standard input:2", "two", {"body": "two", "m": 2}),
    ]


def test_the_column_is_the_one_named_the_usual_one_or_the_only_one(tmp_path):
    path = write(tmp_path / "a.csv", "Body,TEXT\nb,t\n")
    assert texts(path) == ["t"]
    assert texts(path, "body") == ["b"]
    assert texts(write(tmp_path / "b.csv", "comment\nonly\n")) == ["only"]
    assert texts(write(tmp_path / "c.csv", "id|text\n1|a,b\n"), None, "|") == ["a,b"]


def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for times in (20_000, 40_000):
        path = write(tmp_path / "a.csv.gz", "id,text\n" + "1,some words of a text\n" * times)
        tracemalloc.start()
        for _ in read_inputs(path):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 10_000


WRONG = [
    (
        "a.csv",
        b"a,b\n1,2\n",
        r"a\.csv:1: has no column 'text' or 'sentence' or 'review'; there are: a, b\..*--text-field",
    ),
    ("a.csv", b"text,n,n\na,1,2\n", r"a\.csv:1: more than one column is called 'n': columns 2 \('n'\) and 3 \('n'\)"),
    ("a.csv", b"text,n\na, b,1\n", r"a\.csv:2: has 3 columns, but the first line names 2"),
    ("a.jsonl", b'{"text": "a"}\nb\n', r"a\.jsonl:2: not JSON"),
    ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', r"a\.jsonl:2: has no key 'text'; there are: body"),
    ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl:1: 'text' must be text, got 3.*--text-field"),
    ("a.txt", b"fine\nna\xefve\n", r"a\.txt:2: not UTF-8 \(byte 0xef\)"),
    ("a.txt", "fine\n".encode("utf-16"), r"a\.txt: is UTF-16, but UTF-8 is expected.*iconv -f UTF-16 "),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        texts(write(tmp_path / name, content))


def test_a_broken_gzip_a_folder_and_a_missing_file(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"text\n" + b"a\n" * 100_000)[:-20])
    with pytest.raises(DataError, match=r"a\.csv\.gz: damaged or cut short"):
        texts(tmp_path / "a.csv.gz")
    with pytest.raises(DataError, match="is a folder"):
        texts(tmp_path)
    with pytest.raises(DataError, match=r"none\.csv: cannot be read \(No such file"):
        texts(tmp_path / "none.csv")


def test_a_field_of_plain_lines_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"a\.txt: holds lines of plain text.*no field 'body'"):
        texts(write(tmp_path / "a.txt", "one\n"), "body")


def test_a_text_may_begin_with_a_brace(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("{sigh} what a film\nfine\n")
    assert [found.text for found in read_inputs(str(path), None)] == ["{sigh} what a film", "fine"]
    path.write_text('{"text": "cut')
    with pytest.raises(DataError, match="not JSON"):
        list(read_inputs(str(path), None))
