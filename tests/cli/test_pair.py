"""Sentence pairs through the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

FAST = ["--seeds", "1", "--quiet", "--set", "network.width=16", "--set", "fitting.batch=5", "--set=fitting.epochs=0.1"]
FIT = [*FAST, "--set", "fitting.min_steps=100", "--set", "fitting.learning_rate=0.02"]
FEW_STEPS = ["--how", "finetune", "--set", "fitting.min_steps=5", *FAST]


@pytest.fixture(scope="module")
def pairs(tiny_examples: dict[str, list[Any]]) -> list[Any]:
    return tiny_examples["pair"]


@pytest.fixture(scope="module")
def table(pairs: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = [f"{number}\t{pair.first}\t{pair.second}\t{pair.label}\n" for number, pair in enumerate(pairs)]
    path.write_text("".join(["id\tpremise\thypothesis\tlabel\n", *rows]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(cli, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the ten pairs, made by the command itself."""
    out = tmp_path_factory.mktemp("pair") / "run"
    done = cli("transfer", "nli", "--train", table, "--dev", table, "--out", out, *FIT)
    assert "accuracy 100.0 %" in done.stdout
    assert done.stderr == ""
    return out


def labels_in(shown: str) -> list[str]:
    return [line.split("\t")[0] for line in shown.splitlines()]


def test_evaluate(cli, run: Path, table: Path) -> None:
    shown = cli("evaluate", run, "--data", table).stdout
    assert shown.startswith("10 pairs: accuracy 100.0 %, macro-F1 100.0 %\n")
    assert "rows: gold; columns: predicted" in shown
    assert json.loads(cli("evaluate", run, "--data", table, "--json").stdout)["labels"]["same"]["examples"] == 5


def test_every_way_to_give_pairs_gets_the_same_labels(cli, run: Path, table: Path, pairs: list[Any], tmp_path) -> None:
    gold = [pair.label for pair in pairs]
    plain = "".join(f"{pair.first}\t{pair.second}\n" for pair in pairs)
    records = "".join(json.dumps({"a": pair.first, "b": pair.second, "n": 1}) + "\n" for pair in pairs)
    (tmp_path / "a.jsonl").write_text(records, encoding="utf-8")
    named = ["--text-field", "a", "--second-field", "b"]
    assert labels_in(cli("predict", run, "--in", table).stdout) == gold
    assert labels_in(cli("predict", run, input=plain).stdout) == gold
    assert labels_in(cli("predict", run, *named, input=records).stdout) == gold
    found = [
        json.loads(line)
        for line in cli("predict", run, "--in", tmp_path / "a.jsonl", *named, "--json").stdout.splitlines()
    ]
    assert [record["label"] for record in found] == gold
    assert [(record["first"], record["second"], record["n"]) for record in found] == [
        (pair.first, pair.second, 1) for pair in pairs
    ]
    rows = list(csv.DictReader(io.StringIO(cli("predict", run, "--in", table, "--to", "csv").stdout)))
    assert [(row["id"], row["predicted"]) for row in rows] == [(str(n), label) for n, label in enumerate(gold)]


def test_a_blank_line_keeps_its_place(cli, run: Path, pairs: list[Any]) -> None:
    line = f"{pairs[0].first}\t{pairs[0].second}\n"
    assert labels_in(cli("predict", run, input=f"{line}\n{line}").stdout) == [pairs[0].label, "", pairs[0].label]


def test_columns_are_named_for_transfer_and_evaluate(cli, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    with table.open(encoding="utf-8") as source:
        rows = [line.rstrip("\n").split("\t")[1:] for line in source][1:]
    path.write_text("".join(";".join(row) + "\n" for row in [["a", "b", "is"], *rows]), encoding="utf-8")
    named = ["--text-field", "a", "--second-field", "b", "--label-field", "is", "--separator", ";"]
    cli(
        "transfer",
        "pair",
        "--train",
        path,
        "--dev",
        path,
        "--out",
        tmp_path / "run",
        *named,
        *FAST,
        "--set=fitting.min_steps=2",
    )
    assert cli("evaluate", tmp_path / "run", "--data", path, *named).stdout.startswith("10 pairs: accuracy")


def test_a_long_pair_says_which_part_was_left_out(
    cli, run: Path, table: Path, pretrained_runs: dict[str, Path], pairs: list[Any], tmp_path: Path
) -> None:
    """Each text is cut in its middle where they are read apart; BERT reads both in one sequence, cut at the end."""
    apart = "longer than what the model reads; the middle of each long text was left out."
    assert f"10 pairs were {apart}" in cli("evaluate", run, "--data", table, "--longest", "4").stdout
    done = cli("predict", run, "--longest", "4", input=f"{pairs[0].first}\tshort\nshort\tshort\n")
    assert done.stderr == f"headstart: 1 pair was {apart}\n"
    bert, given = tmp_path / "bert", ["--train", table, "--dev", table, "--from", pretrained_runs["bert"]]
    together = "20 pairs were longer than what the model reads; the end of the longer text was left out"
    assert together in cli("transfer", "nli", *given, "--out", bert, *FEW_STEPS, "--longest", "6").stdout
    assert f"10{together.removeprefix('20')}." in cli("evaluate", bert, "--data", table).stdout
    assert "left out" not in cli("evaluate", bert, "--data", table, "--longest", "60").stdout


def test_the_task_of_a_classifier_from_elsewhere(
    cli, table: Path, pretrained_runs: dict[str, Path], pairs: list[Any], tmp_path: Path
) -> None:
    """Its files look the same whether it reads texts or pairs, so --task tells."""
    own, folder = tmp_path / "own", tmp_path / "hf"
    given = ["--train", table, "--dev", table, "--from", pretrained_runs["bert"], "--out", own]
    cli("transfer", "nli", *given, *FEW_STEPS, "--pool", "first")
    cli("export", own, "--to", "hf", "--out", folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "headstart"}))
    assert cli("predict", folder, "--task", "nli", "--in", table).stdout == cli("predict", own, "--in", table).stdout
    scored = cli("evaluate", folder, "--task", "nli", "--data", table).stdout
    assert scored == cli("evaluate", own, "--data", table).stdout
    assert "its head is for the task classify or pair" in cli.refusal("predict", folder, "--task", "ner", "--in", table)
    assert "is a model for sentence pairs" in cli.refusal("predict", own, "--task", "classify", "--in", table)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["predict", "{run}", "--context", "{table}", "--question", "who?"], "is a model for sentence pairs. Give its"),
        (["predict", "{run}", "--in", "{table}", "--predictions", "p.json"], "--predictions is for question answering"),
        (["evaluate", "{run}", "--data", "{table}", "--predictions", "p.json"], "--predictions is for question"),
        (["evaluate", "{run}", "--data", "{table}", "--no-answer-threshold", "0"], "threshold is for question"),
        (["evaluate", "{run}", "--data", "{table}", "--skip-bad"], "--skip-bad is not for sentence pairs"),
        (["predict", "{run}", "--in", "{table}", "--context-field", "x"], "--context-field is not for sentence pairs"),
        (["evaluate", "{run}", "--data", "{table}", "--longest", "0"], "'longest' in the options: must be greater"),
        (["evaluate", "{run}", "--data", "{table}", "--stride", "-1"], "'stride' in the options: must be greater"),
        (["predict", "{run}", "--in", "{table}", "--text-field", "premise"], "name the other with --second-field"),
        (["transfer", "classify", "--train", "{table}", "--out", "x", "--second-field", "b"], "--second-field is not"),
        (
            ["compare", "tag", "--train", "{table}", "--out", "x", "--skip-bad"],
            "--skip-bad is not for sequence tagging",
        ),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    cli, run: Path, table: Path, arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"{run}": str(run), "{table}": str(table)}
    assert says in cli.refusal(*(places.get(part, part) for part in arguments))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("premise\tlabel\na\tb\n", "train.tsv:1: has no two columns such as sentence1/sentence2"),
        ("premise\thypothesis\nx\ty\n", "train.tsv:1: has no column"),
        ("premise\thypothesis\tlabel\nx\t\tyes\n", "train.tsv:2"),
        ("premise\thypothesis\tlabel\nx\ty\tyes\n", "at least two different labels"),
    ],
)
def test_bad_files_are_one_sentence(cli, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(content, encoding="utf-8")
    assert says in cli.refusal("transfer", "nli", "--train", tmp_path / "train.tsv", "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_label_that_training_never_showed_is_named(cli, table: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "dev.tsv", tmp_path / "run"
    path.write_text("premise\thypothesis\tlabel\na\tb\tsame\nc\td\tsome\n", encoding="utf-8")
    said = cli.refusal("transfer", "nli", "--train", table, "--dev", path, "--out", out)
    assert said.startswith(f"{path}:3: has the label 'some', which the training examples never showed.")
    assert "Did you mean 'same'?" in said
    assert not out.exists()


def test_a_line_without_a_tab_is_named(cli, run: Path) -> None:
    assert "standard input:1: expected two texts with one tab" in cli.refusal("predict", run, input="one text\n")


def test_pairs_before_a_broken_line_are_answered_first(cli, run: Path, pairs: list[Any]) -> None:
    done = cli.ended("predict", run, input=f"{pairs[0].first}\t{pairs[0].second}\none text\n")
    assert "standard input:2: expected two texts" in str(done.exception)
    assert labels_in(done.stdout) == [pairs[0].label]
