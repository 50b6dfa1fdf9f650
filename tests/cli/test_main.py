"""How every command begins and ends: version, Ctrl-C, a closed pipe, counts that make no sense."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headstart
from headstart.cli import get
from headstart.cli.main import app
from headstart.errors import ConfigError

RUNNER = CliRunner()


def test_the_version() -> None:
    done = RUNNER.invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"headstart {version('headstart')}\n")


def test_ctrl_c_says_so_and_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(home: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(get, "show_list", interrupted)
    done = RUNNER.invoke(app, ["get", "--list"])
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "headstart: Stopped.\n")


def test_ctrl_c_while_waiting_for_input(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    arguments = ["encode", pretrained_runs["static"], "-", "--out", tmp_path / "vectors.npy", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headstart", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not list(tmp_path.glob("vectors.npy.*")):  # it writes to a partial file, and reads
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, b"", b"headstart: Stopped.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("merged", [False, True])
def test_a_closed_pipe_ends_a_command_silently(merged: bool) -> None:
    """`get --list | true`: the reader is gone before anything is written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headstart", "get", "--list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    errors = process.stderr.read() if process.stderr is not None else b""
    if process.stderr is not None:
        process.stderr.close()
    assert (process.wait(60), errors) == (141, b"")


@pytest.mark.parametrize("most", ["-1", "0"])
@pytest.mark.parametrize("arguments", [["fill", "RUN", "A [MASK] ."], ["neighbours", "RUN", "film"]])
def test_a_count_is_one_or_more(arguments: list[str], most: str) -> None:
    done = RUNNER.invoke(app, [*arguments, "--most", most])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception) == f"--most is a count of one or more; got {most}."


@pytest.mark.parametrize("source", ["", " "])
def test_an_empty_source_is_not_the_current_folder(source: str) -> None:
    with pytest.raises(ConfigError, match="The source is empty; wanted a run directory"):
        headstart.load(source)


def test_a_cache_that_cannot_be_written_names_the_variable(corpus: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "home").write_text("a file where the cache should be")
    monkeypatch.setenv("HEADSTART_HOME", str(tmp_path / "home"))
    for kind in ("static", "elmo", "bert"):
        done = RUNNER.invoke(app, ["pretrain", kind, str(corpus), "--out", str(tmp_path / "run"), "--steps", "2"])
        assert isinstance(done.exception, headstart.HeadstartError)
        assert "HEADSTART_HOME" in str(done.exception)
        assert "--resume" not in str(done.exception)
        assert not (tmp_path / "run").exists()


def test_a_field_of_plain_text_is_refused(corpus: Path, tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["pretrain", "bert", str(corpus), "--out", str(tmp_path / "run"), "--field", "zzz"])
    assert isinstance(done.exception, ConfigError)
    assert "no field 'zzz'" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
