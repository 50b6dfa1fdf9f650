"""`headstart probe` as its user meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import CommandLine


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headstart", "probe", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_row_for_each_layer(pretrained_runs: dict[str, Path], tagged_files: tuple[Path, Path]) -> None:
    train, dev = tagged_files
    done = run(pretrained_runs["bert"], "--data", train, "--dev", dev, "--column", "1", "--words", "200", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    head, columns, *rows, baseline = done.stdout.splitlines()
    assert re.fullmatch(r"bert: 20\d words learned, \d+ scored, \d labels", head)
    assert columns == "layer  accuracy  95 % interval  control  selectivity"
    assert len(rows) == 3
    assert all(re.fullmatch(r"\d +[\d.]+ % +[\d.]+ to [\d.]+ +[\d.]+ % +-?[\d.]+", row) for row in rows)
    assert baseline.startswith("baseline, each word's most frequent tag: ")


def test_the_curve_as_a_picture(
    cli: CommandLine, pretrained_runs: dict[str, Path], tagged_files: tuple[Path, Path], tmp_path: Path
) -> None:
    picture, (train, dev) = tmp_path / "probe.svg", tagged_files
    options = ["--data", train, "--dev", dev, "--column", "1", "--words", "200", "--plot", picture, "--quiet"]
    cli("probe", pretrained_runs["bert"], *options)
    drawn = picture.read_text(encoding="utf-8")
    assert all(f">{name}<" in drawn for name in ("bert", "control task", "baseline", "layer"))


def test_texts_and_json(pretrained_runs: dict[str, Path], labelled: tuple[Path, Path]) -> None:
    train, dev = labelled
    options = ["--task", "classify", "--data", train, "--dev", dev, "--seed", "3", "--json", "--quiet"]
    found = json.loads(run(pretrained_runs["static"], *options).stdout)
    assert found["texts"] == {"train": 80, "dev": 40}
    assert (found["labels"], found["baseline"], found["left_out"]) == (2, 0.5, 0)
    (layer,) = found["layers"]
    assert layer["control"] is None
    assert layer["interval"][0] <= layer["accuracy"] <= layer["interval"][1]


def test_an_option_of_another_task_is_refused(
    pretrained_runs: dict[str, Path], tagged_files: tuple[Path, Path]
) -> None:
    done = run(pretrained_runs["bert"], "--data", tagged_files[0], "--dev", tagged_files[1], "--labels-as", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--labels-as is not for sequence tagging" in done.stderr
