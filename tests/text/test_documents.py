import csv
import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path

import pytest

from headstart.config import resolve
from headstart.errors import ConfigError, DataError
from headstart.text import documents, files, formats
from headstart.text.documents import Block, TextConfig, content_key, discover, read_blocks


def write(path: Path, text: str | bytes) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def texts(path: Path, **settings: object) -> list[str]:
    return [block.text for block in read_blocks([path], TextConfig(**settings))]


def test_blank_lines_separate_documents(tmp_path):
    path = write(tmp_path / "a.txt", "\n\none\ntwo\n \t\nthree\r\n\r\n\r\nfour")
    assert texts(path) == ["one\ntwo", "three", "four"]
    assert all(block.starts_document for block in read_blocks([path], TextConfig()))


def test_each_line_can_be_a_document(tmp_path):
    assert texts(write(tmp_path / "a.txt", "one\n\n  two \nthree"), one_per_line=True) == ["one", "two", "three"]


ROWS = ['He said "hi",\nthen left.', "zweite, Zeile\tmit Tab", "三"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.gz"])
def test_rows_round_trip(tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    file = io.StringIO(newline="")
    if ".csv" in suffix:
        csv.writer(file).writerows([["id", "text"], *enumerate(ROWS)])
    else:
        file.writelines(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(ROWS))
    assert texts(write(path, file.getvalue())) == ROWS


def test_quotation_marks_are_plain_in_tsv(tmp_path):
    assert texts(write(tmp_path / "a.tsv", 'id\tbody\n1\t"so\n2\tgood"\n'), field="body") == ['"so', 'good"']


def test_parquet_rows(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": [*ROWS, None], "n": [1, 2, 3, 4]}), path)
    assert texts(path) == ROWS
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert texts(packed) == ROWS
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut short"):
        texts(packed)
    with pytest.raises(DataError, match="'n' must be text, got 1"):
        texts(path, field="n")
    with pytest.raises(DataError, match="no column 'body'; there are: text, n"):
        texts(path, field="body")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'headstart\[parquet\]'"):
        texts(write(tmp_path / "a.parquet", b"PAR1"))


def test_broken_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="not a parquet file"):
        texts(write(tmp_path / "a.parquet", b"PAR1"))


def test_the_only_column_is_the_text(tmp_path):
    assert texts(write(tmp_path / "a.csv", "review\ngood\n")) == ["good"]


def test_a_byte_order_mark_is_tolerated(tmp_path):
    assert texts(write(tmp_path / "a.txt", b"\xef\xbb\xbfone")) == ["one"]
    assert texts(write(tmp_path / "a.csv", b"\xef\xbb\xbftext\none")) == ["one"]


def test_large_csv_fields(tmp_path):
    long = "word " * 100_000
    assert texts(write(tmp_path / "a.csv", f"text\n{long}\n")) == [long.strip()]


def test_half_a_surrogate_pair_is_replaced(tmp_path):
    assert texts(write(tmp_path / "a.jsonl", '{"text": "a \\ud83d b \\ud83d\\ude00"}')) == ["a \ufffd b 😀"]


WRONG = [
    ("a.txt", b"fine\nnot \xe9 fine\n", r"a\.txt:2: not UTF-8 \(byte 0xe9\).*iconv"),
    ("a.csv", b"text\nfine\nnot \xe9\n", r"a\.csv:3: not UTF-8"),
    ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a\.jsonl:2: not JSON"),
    ("a.jsonl", b'{"text": "a"}\n["b"]\n', r"a\.jsonl:2: expected a JSON object"),
    ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', r"a\.jsonl:2: has no key 'text'; there are: body"),
    ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl:1: 'text' must be text, got 3"),
    ("a.csv", b"a,b\n1,2\n", "none of the columns is called 'text'; there are: a, b.*--field"),
    ("a.csv", b"id,text\n1,fine\n2\n", r"a\.csv:3: has 1 columns, but 'text' is column 2 of 2"),
    ("a.csv", b'text\n"never closed\nmore\n', r"a\.csv:3: broken row"),
    ("a.txt", b"", "holds no text"),
    ("a.txt", b" \n\n\t\n", "holds no text"),
    ("a.csv", b"text\n", "holds no text"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        texts(write(tmp_path / name, content))


def test_a_truncated_gzip_is_an_error(tmp_path):
    whole = gzip.compress(b"some text\n" * 100_000)
    (tmp_path / "a.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged or cut short"):
        texts(tmp_path / "a.txt.gz")
    (tmp_path / "b.txt.gz").write_bytes(b"plain text")
    with pytest.raises(DataError, match="damaged or cut short"):
        texts(tmp_path / "b.txt.gz")


def test_a_missing_field_lists_those_there(tmp_path):
    with pytest.raises(DataError, match="no column 'body'; there are: id, text"):
        texts(write(tmp_path / "a.csv", "id,text\n1,a\n"), field="body")


def test_a_field_of_plain_text_is_refused(tmp_path):
    plain, table = write(tmp_path / "a.txt", "one"), write(tmp_path / "b.csv", "id,body\n1,two\n")
    with pytest.raises(ConfigError, match=r"a\.txt: is plain text.*no field 'body'.*--field"):
        texts(plain, field="body")
    blocks = read_blocks([plain, table], TextConfig(field="body"))  # the table has it
    assert [block.text for block in blocks] == ["one", "two"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_called_that(tmp_path, encoding):
    with pytest.raises(DataError, match=r"a\.txt: is UTF-16(LE|BE)?, but UTF-8 is expected"):
        texts(write(tmp_path / "a.txt", "one line\nand another\n".encode(encoding)))


def test_a_line_without_end_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 21)
    for name in ("a.txt", "a.jsonl"):
        with pytest.raises(DataError, match=rf"{name}:1: this line is longer than 2 MB"):
            texts(write(tmp_path / name, b"x" * (1 << 22)))


@pytest.mark.parametrize("one_per_line", [False, True])
def test_a_long_document_comes_in_blocks(tmp_path, monkeypatch, one_per_line):
    monkeypatch.setattr(documents, "BLOCK_CHARACTERS", 1000)
    monkeypatch.setattr(files, "CHUNK_BYTES", 700)
    monkeypatch.setattr(formats, "PART_CHARACTERS", 700)
    sentence = "A sentence of some words." + (" " if one_per_line else "\n")
    path = write(tmp_path / "a.txt", sentence * 400 + "\n\nshort\n\nlast")
    blocks = list(read_blocks([path], TextConfig(one_per_line=one_per_line)))
    long = [block for block in blocks if block.text not in ("short", "last")]
    assert [block.starts_document for block in long] == [True] + [False] * (len(long) - 1)
    assert all(len(block.text) <= 1000 and block.text.endswith("words.") for block in long)
    assert " ".join(block.text for block in long).split() == (sentence * 400).split()
    assert blocks[-2:] == [Block("short", True), Block("last", True)]


def test_documents_do_not_depend_on_the_size_of_chunks(tmp_path, monkeypatch):
    text = "\n".join(["one", "", "two", "three", " ", "", "four four four", "five", "", "six"])
    path = write(tmp_path / "a.txt", text)
    expected = ["one", "two\nthree", "four four four\nfive", "six"]
    for size in range(20, 30):
        monkeypatch.setattr(files, "CHUNK_BYTES", size)
        assert texts(path) == expected


def test_memory_does_not_grow_with_the_file(tmp_path):
    line = b"Some words of a line that is neither short nor long, as lines are.\n"
    peaks = []
    for times in (100_000, 200_000):
        path = write(tmp_path / "a.txt.gz", line * times)
        tracemalloc.start()
        for _ in read_blocks([path], TextConfig()):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_bytes_read_are_told_and_end_at_the_size(tmp_path):
    paths = [write(tmp_path / "a.txt", "one\n\ntwo"), write(tmp_path / "b.txt.gz", "three")]
    told: list[int] = []
    list(read_blocks(paths, TextConfig(), told.append))
    assert told == sorted(told)
    assert told[-1] == sum(path.stat().st_size for path in paths)


def test_discover_files_folders_and_patterns(tmp_path):
    b = write(tmp_path / "folder" / "b.txt", "x")
    a = write(tmp_path / "folder" / "inner" / "a.jsonl.gz", "x")
    write(tmp_path / "folder" / "notes.md", "x")
    c = write(tmp_path / "c.csv", "x")
    assert discover([tmp_path / "folder", str(c)]) == [b, a, c]
    assert discover([tmp_path / "**" / "*.csv", c, tmp_path / "*.csv"]) == [c]
    assert discover([str(tmp_path / "folder" / "*")]) == [b, a]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.txt", "no such file or folder"),
        ("empty", "holds no text file; known are .txt"),
        ("*.tsv", "matches no text file"),
        ("notes.md", "files of this kind are not read; known are .txt"),
    ],
)
def test_discover_says_what_it_does_not_find(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "notes.md", "x")
    with pytest.raises(DataError, match=message):
        discover([tmp_path / name])


def test_content_key_follows_contents_not_names(tmp_path):
    a, b = write(tmp_path / "a.txt", "one"), write(tmp_path / "b.txt", "two")
    c = write(tmp_path / "else" / "c.txt", "one")
    assert content_key([a, b]) == content_key([c, b])
    assert len({content_key(paths) for paths in ([a, b], [b, a], [a], [write(tmp_path / "a.csv", "one")])}) == 4
    before = content_key([a])
    write(a, "three")
    assert content_key([a]) != before


def test_config_is_checked():
    with pytest.raises(ConfigError, match="valid_share"):
        resolve(TextConfig, {"valid_share": 2.0})
    with pytest.raises(ConfigError, match="Did you mean 'field'"):
        resolve(TextConfig, {"feild": "text"})
