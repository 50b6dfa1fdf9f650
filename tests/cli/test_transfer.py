"""transfer, predict, evaluate and compare as their user meets them: processes, streams, exit codes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headstart import CheckpointError, ConfigError, evaluate, load_classifier, transfer

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
    assert {"bad", "good"} <= {line.split()[0] for line in done.stdout.splitlines() if line}
    assert "rows: gold; columns: predicted" in done.stdout
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
        (["predict", "{run}", "--in", "none.txt"], "", "none.txt: cannot be read"),
        (["predict", "{run}"], '{"text": "a"}\nb\n', "standard input:2: not JSON"),
        (["predict", "{run}"], '{"body": "a", "id": 1}\n', "Name the right one with --text-field"),
        (["predict", "{run}", "--to", "conll"], "a\n", "No format called 'conll'"),
        (["predict", "{run}", "--html", "x.html"], "a\n", "--html is for tagging"),
        (["evaluate", "{run}", "--data", "{train}", "--column", "3"], "", "--column is not for text classification"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--held-out", "none.txt"], "", "none.txt"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--text-field", "label"], "", "--text-field"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--from", "/dev/null"], "", "/dev/null"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "x", "--set", "fitting.epochs=inf"], "", "finite"),
        (["predict", "none"], "", "no such file or folder"),
        (["evaluate", "{run}", "--data", "none.csv"], "", "none.csv"),
        (["predict", "{run}", "--precision", "int9"], "", "Did you mean 'int8'?"),
        (["evaluate", "{run}", "--data", "{train}", "--precision", "int8"], "", "int8 is for BERT"),
        (["transfer", "sentiment", "--train", "{train}", "--out", "{run}"], "", "already holds a run. Give another"),
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


def test_predict_answers_line_by_line_and_keeps_the_place_of_blank_ones(run: Path) -> None:
    done = headstart("predict", run, input="\ufefffine\n\na\ttab\n")
    assert done.returncode == 0, done.stderr
    fields = [line.split("\t") for line in done.stdout.splitlines()]
    assert [len(parts) for parts in fields] == [3, 3, 3]
    assert fields[1] == ["", "", ""]
    assert [parts[2] for parts in fields] == ["fine", "", "a tab"]
    found = json.loads(headstart("predict", run, "--json", input='\ufeff{"text": "fine", "id": 7}\n').stdout)
    assert (found["text"], found["id"]) == ("fine", 7)


def test_predict_reads_what_transfer_reads_and_keeps_the_columns(run: Path, tmp_path: Path) -> None:
    rows = 'id,text,stars\n1,"A fine , warm film",5\n2,dull,1\n'
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(rows.replace("text", "body").encode(), mtime=0))
    shown = headstart("predict", run, "--in", tmp_path / "a.csv").stdout.splitlines()
    assert [line.split("\t")[2] for line in shown] == ["A fine , warm film", "dull"]
    packed = headstart("predict", run, "--in", tmp_path / "b.csv.gz", "--text-field", "body", "--to", "csv").stdout
    table = list(csv.DictReader(io.StringIO(packed)))
    assert [(row["id"], row["body"], row["stars"]) for row in table] == [
        ("1", "A fine , warm film", "5"),
        ("2", "dull", "1"),
    ]
    assert {row["predicted"] for row in table} <= {"bad", "good"}


def test_a_reader_that_leaves_early_is_no_error(run: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a fine film\n" * 3000, encoding="utf-8")
    command = f'"{sys.executable}" -m headstart predict "{run}" --in "{tmp_path / "lines.txt"}" | head -2'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 2)


def test_two_transfers_into_one_folder_do_not_both_write(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    asked = {"train": labelled[0], "out": tmp_path / "run", "seeds": 1, "settings": {"fitting": {"min_steps": 2}}}
    first, second = transfer(**asked), transfer(**asked)
    next(first)
    with pytest.raises(CheckpointError, match="another process is at work"):
        list(second)
    list(first)
    assert load_classifier(tmp_path / "run").labels == ["bad", "good"]


def test_named_entities_through_the_command_line(tagged_files: tuple[Path, Path], tmp_path: Path) -> None:
    train, dev = tagged_files
    few = ["--set", "fitting.min_steps=120", "--set", "fitting.learning_rate=0.02", "--seeds", "1", "--quiet"]
    done = headstart("transfer", "ner", "--train", train, "--dev", dev, "--out", tmp_path / "ner", *few)
    assert done.returncode == 0, done.stderr
    assert "entity F1" in done.stdout
    run = tmp_path / "ner"
    shown = headstart("evaluate", run, "--data", dev).stdout
    assert "30 sentences: entity F1" in shown
    assert {"PER", "LOC", "ORG"} <= {line.split()[0] for line in shown.splitlines() if line}
    text = "nobody likes child . The cat hates garden !"
    found = json.loads(headstart("predict", run, "--json", input=text + "\n").stdout)
    assert all(text[e["start"] : e["end"]] == e["text"] for e in found["entities"])
    assert {(e["text"], e["type"]) for e in found["entities"]} == {("child", "PER"), ("garden", "LOC")}
    columns = headstart("predict", run, "--in", dev).stdout.splitlines()
    words = [line for line in dev.read_text().splitlines() if line]
    assert [line.rsplit(" ", 1)[0] for line in columns if line] == words
    page = tmp_path / "page.html"
    assert headstart("predict", run, "--to", "view", "--html", page, input=text).returncode == 0
    assert ">child" in page.read_text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a O\nb\n", "train.conll:2: has 1 columns"),
        ("a O\n", "at least two different tags"),
        ("", "holds no sentence"),
        ("a\nb\n", "none of them the tag"),
    ],
)
def test_bad_column_files_are_one_sentence(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text(content, encoding="utf-8")
    done = headstart("transfer", "tag", "--train", "train.conll", "--out", "run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_tag_that_training_never_showed_is_named(tagged_files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "dev.conll").write_text("a O\nb B-GPE\n", encoding="utf-8")
    done = headstart("transfer", "tag", "--train", tagged_files[0], "--dev", "dev.conll", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "dev.conll:1: word 2 of this sentence, 'b', has the tag 'B-GPE'" in done.stderr
