from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headstart.cli.full_disk import output_refused

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_output_that_a_full_disk_refuses_is_one_sentence(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "headstart", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert said.startswith(
        "headstart: Standard output, or a temporary file, cannot be written (No space left on device)"
    )


def test_other_errors_are_not_of_the_disk() -> None:
    assert output_refused(FileNotFoundError(2, "No such file")) is None
    assert output_refused(RuntimeError("No space left on device")) is None
