"""An open file: what is not one is refused, and so is an archive that unpacks to far more than text does."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.tasks.squad import squad_document
from headstart.text import files
from headstart.text.documents import discover
from headstart.text.files import Source


@pytest.mark.parametrize("name", ["text.txt", "text.csv", "text.jsonl.gz"])
def test_a_pipe_without_a_writer_is_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    for read in (Source, lambda path: discover([path])):
        with pytest.raises(DataError, match="is a pipe or a device, not a file"):
            read(tmp_path / name)


def test_a_link_to_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").symlink_to("/dev/zero")
    with pytest.raises(DataError, match="is a pipe or a device, not a file"):
        Source(tmp_path / "text.txt")


def test_a_gzip_bomb_is_refused_long_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_BYTES", 1 << 20)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b"[" * (8 << 20)))
    (tmp_path / "bomb.conll.gz").write_bytes(gzip.compress(b"Anna B-PER\n" * (1 << 20)))
    with pytest.raises(DataError, match="unpacks to more than 200 times its size"):
        squad_document(tmp_path / "bomb.json.gz")
    with Source(tmp_path / "bomb.conll.gz") as source, pytest.raises(DataError, match="unpacks to more than 200 times"):
        list(source.lines())
    assert source.line < 1 << 19


def test_text_that_is_packed_well_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_BYTES", 1 << 10)
    text = "".join(f"line {number} of many that are much alike\n" for number in range(5_000))
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(text.encode()))
    with Source(tmp_path / "text.txt.gz") as source:
        assert "".join(source.chunks()) == text
