from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headstart.cli.refused_files import refused_file

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_output_that_a_full_disk_refuses_is_one_sentence(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "headstart", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert said.startswith("headstart: Standard output, or a temporary file, cannot be written (No space left")


def test_without_a_temporary_folder_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError) as raised, tempfile.TemporaryDirectory():
        pass
    said = refused_file(raised.value)
    assert said is not None
    assert "Temporary files cannot be written (No such file or directory)" in said
    assert "TMPDIR" in said


def test_other_errors_are_not_of_the_disk(tmp_path: Path) -> None:
    for error in (
        FileNotFoundError(2, "No such file", "/absent"),
        FileNotFoundError(2, "No such file"),
        RuntimeError(),
    ):
        assert refused_file(error) is None
