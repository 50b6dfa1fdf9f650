import os
import time

import pytest

from headstart.errors import DataError
from headstart.text.building import PREFIX, SEAL, STALE_SECONDS, building, cache_entry, is_whole


def test_an_entry_appears_whole(tmp_path):
    with building(tmp_path / "cache" / "entry") as folder:
        (folder / "file").write_text("x")
        assert not (tmp_path / "cache" / "entry").exists()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["entry"]
    assert (tmp_path / "cache" / "entry" / "file").read_text() == "x"


@pytest.mark.parametrize("name", ["part/ids", "index.json", SEAL])
def test_a_flipped_bit_in_any_file_of_an_entry_is_told_and_the_entry_removed(name, tmp_path, caplog):
    target = tmp_path / "entry"
    assert not is_whole(target)
    with cache_entry(target) as folder:
        (folder / "part").mkdir()
        (folder / "part" / "ids").write_bytes(bytes(1_000))
        (folder / "index.json").write_text('{"units": 500}')
    assert is_whole(target)
    content = bytearray((target / name).read_bytes())
    content[9] ^= 4
    (target / name).write_bytes(content)
    assert not is_whole(target)
    assert not target.exists()
    assert f"'{name}' is damaged; this part of the cache is made anew." in caplog.text or name == SEAL


def test_an_entry_of_a_version_without_checksums_is_taken_as_it_is(tmp_path):
    with building(tmp_path / "entry") as folder:
        (folder / "file").write_text("x")
    assert is_whole(tmp_path / "entry")


def test_an_error_leaves_no_entry(tmp_path):
    def fail() -> None:
        with building(tmp_path / "entry") as folder:
            (folder / "file").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_builders_wins(tmp_path):
    with building(tmp_path / "entry") as late:
        (late / "file").write_text("late")
        with building(tmp_path / "entry") as early:
            (early / "file").write_text("early")
    assert (tmp_path / "entry" / "file").read_text() == "early"
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def test_what_dead_builders_left_is_removed_after_a_day(tmp_path):
    old, young = tmp_path / f"{PREFIX}old", tmp_path / f"{PREFIX}young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (0, time.time() - STALE_SECONDS - 60))
    with building(tmp_path / "entry"):
        pass
    assert not old.exists()
    assert young.exists()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(DataError, match=r"this folder cannot be written .*HEADSTART_HOME"),
        building(tmp_path / "file" / "x"),
    ):
        pass
