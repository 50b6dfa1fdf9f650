from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.text import formats
from headstart.text.lines import Lines


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("a b\n\nc\n", ["a b", "", "c"]),
        ("a\r\n\r\nb", ["a", "", "b"]),
        ("\ufeffa\n", ["a"]),
        ("\n", [""]),
        ("", []),
        ("a\u2028b\x0cc\n", ["a\u2028b\x0cc"]),  # only a line feed ends a line
    ],
)
def test_a_text_for_every_line(content: str, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(content.encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(content.encode()))
    assert list(Lines(tmp_path / "a.txt")) == list(Lines(tmp_path / "b.txt.gz")) == texts
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert list(Lines("-")) == texts


def test_lines_at_the_edges_of_what_is_read_at_once(tmp_path: Path) -> None:
    texts = ["x" * (formats.CHUNK_BYTES - 1), "", "y" * formats.CHUNK_BYTES, "z"]
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n")
    assert list(Lines(tmp_path / "a.txt")) == texts


def test_a_text_for_every_row_of_a_table_and_every_file_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('said,by\n"one, two",x\n,y\n"three\nfour",z\n')
    (tmp_path / "b.jsonl").write_text('{"said": "five"}\n')
    lines = Lines(tmp_path, "said")
    assert list(lines) == ["one, two", "", "three\nfour", "five"]
    assert lines.count == lines.expected() == 4
    assert lines.where == f"{tmp_path / 'b.jsonl'}:1"


def test_how_many_are_to_come_is_known_from_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line of some length\n" * 20_000)
    lines = Lines(tmp_path / "a.txt")
    assert lines.expected() == 0
    for _ in zip(range(10_000), lines, strict=False):
        pass
    assert lines.expected() == pytest.approx(20_000, rel=0.3)
    assert lines.expected() >= lines.count


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(DataError, match=r"a\.txt:2: not UTF-8"):
        list(Lines(tmp_path / "a.txt"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"fine\nna\xefve\n")))
    with pytest.raises(DataError, match="standard input:2: not UTF-8"):
        list(Lines("-"))


def test_a_field_of_plain_lines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    for given in (tmp_path / "a.txt", "-"):
        with pytest.raises(ConfigError, match="there is no field 'zzz'"):
            Lines(given, "zzz")
