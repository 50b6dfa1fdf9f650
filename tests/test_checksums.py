"""The checksums of a finished folder: what is noticed, what is only told, and what opens as before."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path

import pytest

import headstart
from headstart.checksums import SUMS, check_sums, remove_sums, write_sums
from headstart.errors import CheckpointError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a run looks like, with its sums."""
    for name in ("config.toml", "weights.safetensors", "CARD.md", "source0/words.tsv", "state/lock", "x.partial"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"This is {name}.\n", encoding="utf-8")
    write_sums(tmp_path)
    return tmp_path


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_folder_as_it_was_written_is_whole(folder: Path) -> None:
    check_sums(folder)
    listed = (folder / SUMS).read_text(encoding="utf-8")
    assert "weights" in listed
    assert "source0/words.tsv" in listed
    assert "lock" not in listed
    assert "partial" not in listed
    assert subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=folder).returncode == 0


@pytest.mark.parametrize("name", ["config.toml", "weights.safetensors", "source0/words.tsv"])
def test_one_bit_in_a_file_is_noticed_and_how_to_accept_a_change_is_told(folder: Path, name: str) -> None:
    flip(folder / name)
    with pytest.raises(CheckpointError, match=f"{name}.*is not as it was written.*remove {SUMS}"):
        check_sums(folder)
    check_sums(folder, made_anew=[name])
    remove_sums(folder)
    check_sums(folder)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "weights.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"weights.safetensors: is listed in .* and cannot be read"):
        check_sums(folder)


def test_a_file_for_people_is_only_told_and_may_be_removed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "CARD.md").write_text("My notes.\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "headstart"):
        check_sums(folder)
    assert "CARD.md: is not as it was written" in caplog.text
    (folder / "CARD.md").unlink()
    check_sums(folder)


def test_a_changed_file_in_a_format_of_others_is_told_and_no_error(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flip(folder / "weights.safetensors")
    with caplog.at_level(logging.WARNING, "headstart"):
        check_sums(folder, foreign=True)
    assert "weights.safetensors: is not as it was written" in caplog.text


def test_a_file_that_is_opened_alone_is_compared(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run, vectors = tmp_path / "run", tmp_path / "vectors"
    list(headstart.import_run("words-mini", run, words=["cat", "dog"]))
    list(headstart.export(run, "glove", vectors))
    headstart.load(vectors / "glove.txt")
    assert caplog.text == ""
    content = (vectors / "glove.txt").read_text(encoding="utf-8")
    (vectors / "glove.txt").write_text(content.replace("1", "2"), encoding="utf-8")
    headstart.load(vectors / "glove.txt")
    assert "glove.txt: is not as it was written" in caplog.text


def test_damaged_sums_say_so(folder: Path) -> None:
    for damaged in (b"\xff\xfe", b"zz  weights.safetensors\n", bytes(70)):
        (folder / SUMS).write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged itself"):
            check_sums(folder)


def test_a_run_is_checked_when_it_is_opened(tmp_path: Path) -> None:
    for kind in ("words-mini",):
        run = tmp_path / kind
        list(headstart.import_run(kind, run, words=["cat", "dog"]))
        headstart.load(run)
        flip(run / "weights.safetensors")
        with pytest.raises(CheckpointError, match=r"weights.safetensors: is not as it was written"):
            headstart.load(run)
