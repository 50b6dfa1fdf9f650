"""docs/tour.md: its commands run, in their order, and the models of the package give what it says."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

TOUR = Path(__file__).parents[2] / "docs" / "tour.md"
QUICK = ["--seeds", "1", "--set", "fitting.min_steps=2", "--set", "fitting.epochs=0.1"]


def commands() -> list[list[str]]:
    found = re.findall(r"^headstart (.*)", TOUR.read_text(encoding="utf-8"), re.M)
    return [shlex.split(command) for command in found]


@pytest.fixture
def folder(tmp_path: Path, labelled: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the tour reads: sentences with `play` and `bank`, and a few labelled ones."""
    senses = tomllib.loads(files("headstart.inspection").joinpath("senses.toml").read_text(encoding="utf-8"))
    for file, word in (("reviews.txt", "play"), ("novels.txt", "bank")):
        (tmp_path / file).write_text("\n".join(line for lines in senses[word].values() for line in lines) + "\n")
    (tmp_path / "few.txt").write_text("It was a great film .\nThe story is old .\n")
    (tmp_path / "pairs.txt").write_text("sun\tmoon\t8\ncat\tdog\t7\nfilm\tmovie\t9.5\nking\tcabbage\t0.5\n")
    for name, path in zip(("train", "dev"), labelled, strict=True):
        (tmp_path / f"{name}.csv").write_bytes(path.read_bytes())
        words = "Ada NNP B-PER\nlives VBZ O\nin IN O\nRome NNP B-LOC\n. . O\n\n"
        (tmp_path / f"{name}.conll").write_text(words * 12)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_tour_run(cli: Any, folder: Path) -> None:
    for words in commands():
        if words[0] != "serve":  # runs until it is stopped; the test of the README starts one
            cli(*words, *(QUICK if words[0] == "transfer" else []))
    made = {path.name for path in folder.iterdir()}
    named = re.findall(r"--(?:plot|html|out) ([\w.]+)", TOUR.read_text(encoding="utf-8"))
    assert made >= {Path(name).name for name in named if "." in name}
    assert len(named) >= 5


def test_what_the_tour_shows_of_words_is_true(cli: Any, folder: Path) -> None:
    """Answers that depend on the package's models alone, line by line."""
    text = TOUR.read_text(encoding="utf-8")
    for command in (["neighbours", "words-mini", "play", "--most", "4"], ["fill", "bert-mini", FILM]):
        for line in cli(*command).stdout.splitlines():
            word = line.split()[-1]
            assert re.search(rf"^ *[\d.]+ (%)? *{word}$", text, re.M), f"{word} of {shlex.join(command)} is not shown"


FILM = "The film was really [MASK] ."


def test_the_pictures_of_the_tour_are_there() -> None:
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", TOUR.read_text(encoding="utf-8")):
        assert os.path.getsize(TOUR.parent / name) > 1_000
