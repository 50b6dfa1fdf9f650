"""`headstart encode` as its user meets it."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import headstart
from headstart.inspection import stretches
from headstart.progress import result_of

TEXT = "The cat likes the film .\n\nNobody writes old songs .\n"


def run(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headstart", "encode", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_row_per_line_from_a_pipe(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "vectors.npy"
    done = run(pretrained_runs["bert"], "-", "--out", out, "--layers", "all", "--quiet", input=TEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{out}: 3 x 3 x 16, float32; 3 lines, 1 of them without a word\n"
    assert np.load(out).shape == (3, 3, 16)


def test_two_bad_inputs_are_one_sentence_each(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("", encoding="utf-8")
    for source, says in ((pretrained_runs["static"], "holds no text"), (tmp_path / "none", "no such file or folder")):
        done = run(source, text, "--out", tmp_path / "vectors.npy")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("headstart: ")
        assert done.stderr.count("\n") == 1
        assert says in done.stderr
        assert list(tmp_path.iterdir()) == [text]


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))


def test_no_room_for_the_file(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT * 20, encoding="utf-8")
    done = run(pretrained_runs["static"], text, "--out", tmp_path / "vectors.npy", preexec_fn=no_room)
    assert done.returncode == 2
    assert done.stderr.endswith(
        "cannot be written (File too large). Make room there and give the same command again, which goes on where it "
        "was, or give another --out.\n"
    )
    assert list(tmp_path.iterdir()) == [text]


def test_killed_and_given_again(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL, which no process can prepare for. Saving is made eager, and encoding slow enough to be hit."""
    text = tmp_path / "text.txt"
    text.write_text(TEXT * 100, encoding="utf-8")
    options = ["--layers", "all", "--quiet"]
    eager = """
import time
from headstart.cli.main import run
from headstart.inspection import stretches, unfinished
unfinished.SECONDS_BETWEEN_SAVES, stretches.STRETCH = 0, 10
pause = unfinished.Unfinished.pause
unfinished.Unfinished.pause = lambda part, digest: (pause(part, digest), time.sleep(0.05))
run()
"""
    out, record = tmp_path / "vectors.npy", tmp_path / "vectors.npy.partial" / "record.json"
    command = [sys.executable, "-c", eager, "encode", pretrained_runs["elmo"], text, "--out", out, *options]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in this process: bits depend on it
    killed = subprocess.Popen(list(map(str, command)))
    while not (record.exists() and json.loads(record.read_text())["reached"]["lines"] >= 40):
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    assert not out.exists()
    went_on = subprocess.run(list(map(str, command))[:-1], capture_output=True, text=True, check=True)
    assert re.search(r"Going on after line \d+, where this was stopped", went_on.stderr)
    monkeypatch.setattr(stretches, "STRETCH", 10)
    result_of(headstart.encode(pretrained_runs["elmo"], text, tmp_path / "whole.npy", layers="all"))
    assert out.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "vectors.npy", "whole.npy"}
