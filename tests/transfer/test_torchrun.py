"""`headstart transfer` in real processes under torchrun: killed, stopped, and given a mistake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.pretraining.launched import finished, one_home, torchrun, workers  # noqa: F401 (a fixture)

FITTING = {"epochs": 0.1, "evaluations": 2}


@pytest.fixture
def files(labelled: tuple[Path, Path], pretrained_runs: dict[str, Path]) -> dict[str, Any]:
    return {"source": pretrained_runs["bert"], "train": labelled[0], "dev": labelled[1]}


def command(files: dict[str, Any], out: Path, **fitting: float) -> list[object]:
    settings = [f"fitting.{name}={value}" for name, value in {**FITTING, **fitting}.items()]
    options = ["--from", files["source"], "--how", "finetune", "--train", files["train"], "--dev", files["dev"]]
    given = [part for setting in settings for part in ("--set", setting)]
    return ["transfer", "sentiment", *options, "--out", out, "--seeds", 1, *given]


def wait_for_lock(out: Path, process: subprocess.Popen[str]) -> None:
    while not (out / "state" / "lock").exists():
        assert process.poll() is None
        time.sleep(0.01)


def kept(out: Path) -> tuple[bytes, dict[str, Any]]:
    """The weights, and all that the results say apart from the time."""
    results = json.loads((out / "results.json").read_text())
    for run in results["runs"]:
        run.pop("seconds")
    return (out / "weights.safetensors").read_bytes(), results


def test_killed_and_restarted_ends_with_the_files_of_an_undisturbed_fit(files: dict[str, Any], tmp_path: Path) -> None:
    out, whole = tmp_path / "killed", tmp_path / "whole"
    with torchrun(*command(files, out, min_steps=150), restarts=1) as process:
        wait_for_lock(out, process)
        time.sleep(0.5)
        os.kill(workers(process.pid)[0], signal.SIGKILL)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    finished(*command(files, whole, min_steps=150))
    assert kept(out) == kept(whole)
    assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}


def test_a_stop_of_any_process_ends_all_of_them_and_leaves_nothing(files: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "stopped"
    with torchrun(*command(files, out, min_steps=100_000), restarts=1) as process:
        wait_for_lock(out, process)
        os.kill(workers(process.pid)[1], signal.SIGTERM)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said  # and torchrun has not restarted what was asked to stop
    assert said.count("Stopped. A transfer leaves nothing behind") == 1
    assert not out.exists()


def test_a_mistake_is_said_once_and_ends_every_process(files: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "mistaken"
    with torchrun(*command(files, out, learning_rate=1e30)) as process:
        said = process.communicate(timeout=120)[1]
    assert process.returncode != 0
    assert said.count("headstart: ") == 1
    assert "the learning rate is too high" in said
    assert "exitcode  : 2" in said
    assert not out.exists()
