"""`headstart import`, `export` and `fill` as their user meets them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import headstart
from headstart.checksums import SUMS
from headstart.progress import result_of


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headstart", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_in_and_out_again(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    out = run("export", pretrained_runs["bert"], "--to", "hf", "--out", tmp_path / "hf")
    assert (out.returncode, out.stderr) == (0, "")
    assert "config.json, headstart.sha256, model.safetensors, tokenizer.json" in out.stdout
    back = run("import", tmp_path / "hf", "--out", tmp_path / "run")
    assert back.returncode == 0, back.stderr
    assert "(encoder, masked, next); see" in back.stdout
    filled = run("fill", tmp_path / "run", "nobody [MASK] the film .", "--most", "3")
    assert filled.returncode == 0, filled.stderr
    assert len(filled.stdout.splitlines()) == 3


def test_words_wanted_are_told_once(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    assert run("export", pretrained_runs["static"], "--to", "glove", "--out", tmp_path / "out").returncode == 0
    (tmp_path / "words.txt").write_text("film\nplay\nunheard-of\n", encoding="utf-8")
    files = (tmp_path / "out" / "glove.txt", "--words", tmp_path / "words.txt")
    done = run("import", *files, "--out", tmp_path / "few", "--quiet")
    assert done.returncode == 0
    assert done.stderr == "glove.txt has 2 of the 3 wanted words.\n"
    assert len(headstart.load(tmp_path / "few").tokenizer) == 5


def test_an_imported_run_serves_where_a_run_is_asked_for(
    corpus: Path, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    result_of(headstart.export(pretrained_runs["static"], "word2vec", tmp_path / "out"))
    result_of(headstart.import_run(tmp_path / "out" / "word2vec.txt", tmp_path / "vectors"))
    small = ["--set", "encoder.width=16", "--set", "encoder.inner=32", "--set", "objective.length=32"]
    started = run(
        *("pretrain", "bert", corpus, "--out", tmp_path / "bert", "--size", "tiny", "--steps", "2"),
        *("--vectors", tmp_path / "vectors", *small),
    )
    assert started.returncode == 0, started.stderr


def spoilt(folder: Path, how: str) -> Path:
    """A Hugging Face folder of another tool, without checksums, with one thing wrong."""
    (folder / SUMS).unlink()
    weights, config = folder / "model.safetensors", json.loads((folder / "config.json").read_text())
    if how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "disagreeing config":
        (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 40}))
    elif how == "other tokenizer":
        pieces = (folder / "vocab.txt").read_text().splitlines()
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("\n".join([*pieces, "onemore"]) + "\n")
    elif how == "not tensors":
        weights.unlink()
        torch.save({"epoch": 3}, folder / "pytorch_model.bin")
    return folder


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("truncated", "not a whole safetensors file"),
        ("disagreeing config", "config.json and the weights disagree"),
        ("other tokenizer", "the tokenizer has"),
        ("not tensors", "wanted tensors by name, and nothing else"),
    ],
)
def test_bad_files_are_one_line_exit_code_two_and_nothing_left(
    how: str, says: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    folder = spoilt(result_of(headstart.export(pretrained_runs["bert"], "hf", tmp_path / "hf")), how)
    done = run("import", folder, "--out", tmp_path / "run")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("headstart: ")
    assert says in done.stderr
    shutil.rmtree(folder)
    assert list(tmp_path.iterdir()) == []
