"""transfer, predict, evaluate and compare as their user meets them: processes, streams, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart import ConfigError, evaluate, load_classifier, transfer

FAST = ["--set", "fitting.min_steps=150", "--set", "fitting.epochs=0.1", "--set", "fitting.batch=8"]


def headstart(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headstart", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def run(labelled: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, made by the command itself."""
    out = tmp_path_factory.mktemp("cli") / "run"
    train, dev = labelled
    done = headstart("transfer", "sentiment", "--train", train, "--dev", dev, "--out", out, "--seeds", "2", *FAST)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr
    assert "seed 1: dev accuracy" in done.stderr
    assert "over 2 seeds" in done.stdout
    assert done.stdout.strip().endswith("CARD.md")
    return out


def test_predict_reads_lines_and_gives_labels_with_probabilities(run: Path) -> None:
    done = headstart("predict", run, input="The film , superb .\nthe play was dull\n")
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(label, text) for label, _, text in lines] == [
        ("good", "The film , superb ."),
        ("bad", "the play was dull"),
    ]
    assert all(0.5 <= float(probability) <= 1 for _, probability, _ in lines)


def test_predict_reads_and_writes_json_lines(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"body": "superb"}\n{"body": "dull"}\n', encoding="utf-8")
    done = headstart("predict", run, "--in", path, "--text-field", "body", "--json")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["label"] for record in records] == ["good", "bad"]
    for record in records:
        assert set(record["probabilities"]) == {"good", "bad"}
        assert sum(record["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_evaluate_scores_every_label(run: Path, labelled: tuple[Path, Path]) -> None:
    done = headstart("evaluate", run, "--data", labelled[1])
    assert done.returncode == 0, done.stderr
    assert "40 examples: accuracy" in done.stdout
    assert {"bad", "good"} <= {line.split()[0] for line in done.stdout.splitlines()}
    found = json.loads(headstart("evaluate", run, "--data", labelled[1], "--json").stdout)
    assert found["labels"]["good"]["examples"] == 20


def test_predict_and_evaluate_in_int8(
    labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    train, dev = labelled
    fit = {"fitting": {"min_steps": 20, "epochs": 0.1}}
    bert, out = pretrained_runs["bert"], tmp_path / "run"
    list(transfer(source=bert, how="finetune", train=train, dev=dev, out=out, seeds=1, settings=fit))
    texts = ["The film , superb .", "the play was dull"]
    done = headstart("predict", out, "--json", "--precision", "int8", input="\n".join(texts))
    found = [list(json.loads(line)["probabilities"].values()) for line in done.stdout.splitlines()]
    rounded = load_classifier(out, precision="int8")
    assert np.allclose(found, rounded.predict_proba(texts), atol=1e-6)
    difference = np.abs(found - load_classifier(out).predict_proba(texts)).max()
    assert 1e-6 < difference < 0.05
    done = headstart("evaluate", out, "--data", dev, "--precision", "int8", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == evaluate(out, dev, precision="int8")
    with pytest.raises(ConfigError, match="cannot be saved"):
        rounded.save(tmp_path / "copy", {})
    assert not (tmp_path / "copy").exists()


def test_quiet_shows_the_result_only(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "run"
    few = ["--set", "fitting.min_steps=2", "--set", "fitting.epochs=0.1"]
    done = headstart("transfer", "sentiment", "--train", labelled[0], "--out", out, "--seeds", "1", "--quiet", *few)
    assert (done.returncode, done.stderr) == (0, "")
    assert "one seed only" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "standard_input", "says"),
    [
        (["predict", "{run}"], "fine\n\nmore\n", "standard input:2: the text is empty"),
        (["predict", "{run}", "--in", "none.txt"], "", "none.txt: cannot be read"),
        (["predict", "{run}"], '{"text": "a"}\nb\n', "standard input:2: not JSON"),
        (["predict", "{run}"], '{"body": "a"}\n', "has no text in 'text'"),
        (["predict", "none"], "", "no such file or folder"),
        (["evaluate", "{run}", "--data", "none.csv"], "", "none.csv"),
        (["predict", "{run}", "--precision", "int9"], "", "Did you mean 'int8'?"),
        (["evaluate", "{run}", "--data", "{train}", "--precision", "int8"], "", "int8 is for BERT"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "{run}"], "", "already holds a run"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--mix", "scaler"], "", "mix.kind"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--how", "thaw"], "", "frozen, gradual"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--labels-as", "2"], "", "labels"),
        (
            ["compare", "sentiment", "--train", "{train}", "--labels", "all", "--out", "x"],
            "",
            "nothing to compare with scratch",
        ),
    ],
)
def test_what_a_user_caused_is_one_line_and_exit_code_two(
    arguments: list[str], standard_input: str, says: str, run: Path, labelled: tuple[Path, Path], tmp_path: Path
) -> None:
    places = {"{run}": str(run), "{train}": str(labelled[0])}
    done = headstart(*(places.get(part, part) for part in arguments), input=standard_input, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("headstart: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not (tmp_path / "x").exists()


def test_wrong_encoding_names_its_line(run: Path, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("fine\ncaf\xe9\n".encode("latin-1"))
    done = headstart("predict", run, "--in", tmp_path / "latin.txt")
    assert done.returncode == 2
    assert "latin.txt:2: not UTF-8" in done.stderr
