"""Semantic role labelling through the command line: columns, JSON lines, plain text; every format; bad input."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headstart.tasks.role_json import roles_as_json
from headstart.tasks.role_reading import read_roles
from headstart.tasks.role_writers import RoleColumns
from headstart.tasks.roles import Roles
from headstart.tasks.srl import Srl

FAST = ["--seeds", "1", "--quiet", "--set", "network.width=16", "--set", "fitting.batch=5", "--set=fitting.epochs=0.1"]
FIT = [*FAST, "--set", "fitting.min_steps=150", "--set", "fitting.learning_rate=0.02"]
FEW = [*FAST, "--set", "fitting.min_steps=2"]
TEXT = "Anna sold cars today\n\nBoris saw it today\n"
COLOURED = "\x1b["


@pytest.fixture(scope="module")
def sentences(tiny_examples: dict[str, list[Any]]) -> list[Any]:
    return tiny_examples["srl"]


def write_columns(path: Path, sentences: list[Any]) -> Path:
    pairs = [(sentence, Roles(sentence.predicates)) for sentence in sentences]
    path.write_text(RoleColumns(Srl.learn(sentences)).lines(pairs), encoding="utf-8")
    return path


def json_lines(sentences: list[Any]) -> str:
    return "".join(json.dumps(roles_as_json(one, Roles(one.predicates))) + "\n" for one in sentences)


@pytest.fixture(scope="module")
def columns(sentences: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_columns(tmp_path_factory.mktemp("srl") / "roles.gold_conll", sentences)


@pytest.fixture(scope="module")
def run(cli, columns: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the ten sentences, made by the command itself."""
    out = tmp_path_factory.mktemp("srl") / "run"
    done = cli("transfer", "srl", "--train", columns, "--dev", columns, "--out", out, *FIT)
    assert "dev argument F1 100.0 %" in done.stdout
    assert done.stderr == ""
    return out


def objects(shown: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown.splitlines()]


# --- evaluate ---------------------------------------------------------------------------------------------------------


def test_evaluate_scores_with_the_gold_predicates_and_without(cli, run: Path, columns: Path) -> None:
    first, second, *table = cli("evaluate", run, "--data", columns).stdout.splitlines()
    assert first == "10 sentences: argument F1 100.0 %, precision 100.0 %, recall 100.0 %"
    assert second.startswith("Without the gold predicates, which the model then finds itself: argument F1 ")
    assert "predicate F1 " in second
    assert [line.split()[0] for line in table] == ["role", "ARG0", "ARG1", "ARGM-TMP", "V"]
    found = json.loads(cli("evaluate", run, "--data", columns, "--json").stdout)
    assert (found["task"], found["metric"], found["examples"], found["predicates"]) == ("srl", "f1", 10, 15)
    assert found["f1"] == 1
    assert {"found_f1", "found_precision", "found_recall", "found_predicate_f1", "roles"} <= found.keys()


def test_columns_and_json_lines_are_the_same_examples(cli, run: Path, columns: Path, sentences, tmp_path: Path) -> None:
    path = tmp_path / "roles.jsonl"
    path.write_text(json_lines(sentences), encoding="utf-8")
    assert cli("evaluate", run, "--data", path).stdout == cli("evaluate", run, "--data", columns).stdout
    own = tmp_path / "own.jsonl"
    lines = [{"w": one["words"], "predicates": one["predicates"]} for one in objects(json_lines(sentences))]
    own.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert cli("evaluate", run, "--data", own, "--text-field", "w").stdout == (
        cli("evaluate", run, "--data", path).stdout
    )
    assert "--text-field" in cli.refusal("evaluate", run, "--data", own)


def test_sentences_that_are_cut_are_counted(cli, run: Path, columns: Path) -> None:
    shown = cli("evaluate", run, "--data", columns, "--longest", "2", "--stride", "1").stdout
    assert shown.endswith(
        "10 sentences were longer than what the model reads; arguments far from their predicate were not looked for.\n"
    )


# --- predict ----------------------------------------------------------------------------------------------------------


def test_columns_are_predicted_as_columns_that_the_reader_reads(cli, run: Path, columns: Path, tmp_path: Path) -> None:
    shown = cli("predict", run, "--in", columns).stdout
    assert shown == columns.read_text(encoding="utf-8")  # the predicates are given, and the roles known by heart
    (tmp_path / "again.gold_conll").write_text(shown, encoding="utf-8")
    again = read_roles(tmp_path / "again.gold_conll").sentences
    assert [(one.words, one.predicates) for one in again] == [
        (one.words, one.predicates) for one in read_roles(columns).sentences
    ]


def test_plain_text_is_split_and_its_roles_stand_at_its_characters(cli, run: Path) -> None:
    for to in (["--json"], ["--to", "json"]):
        found = objects(cli("predict", run, *to, input=TEXT).stdout)
        assert [one["text"] for one in found] == TEXT.splitlines()
        assert (found[1]["words"], found[1]["predicates"]) == ([], [])
        for one in found:
            for predicate in one["predicates"]:
                assert one["text"][predicate["start"] : predicate["end"]] == one["words"][predicate["word"]]
                for argument in predicate["arguments"]:
                    assert one["text"][argument["start"] : argument["end"]] == argument["text"]
        (sold,) = found[0]["predicates"]
        roles = [(argument["role"], argument["text"]) for argument in sold["arguments"]]
        assert roles == [("ARG0", "Anna"), ("V", "sold"), ("ARG1", "cars"), ("ARGM-TMP", "today")]


def test_predicates_of_json_lines_are_kept_and_others_found(cli, run: Path, sentences) -> None:
    given = [
        {"words": ["Anna", "sold", "cars", "today"]},
        {"words": ["Anna", "sold", "cars", "today"], "predicates": [2]},
        {"words": ["Anna", "sold", "cars", "today"], "predicates": []},
    ]
    lines = "".join(json.dumps(line) + "\n" for line in given)
    found = objects(cli("predict", run, "--input-as", "words", "--json", input=lines).stdout)
    assert [[predicate["word"] for predicate in one["predicates"]] for one in found] == [[1], [2], []]
    gold = json_lines(sentences)  # what is written can be read and answered again
    assert cli("predict", run, "--input-as", "words", "--json", input=gold).stdout == gold


def test_the_view_has_a_line_for_each_predicate(cli, run: Path) -> None:
    shown = cli("predict", run, "--to", "view", input="Anna left and sold it today\n").stdout
    plain = "".join(part.partition("m")[2] if number else part for number, part in enumerate(shown.split(COLOURED)))
    assert plain.splitlines() == [
        "Anna left and sold it today",
        "  [ARG0 Anna] [V left] and sold [ARG1 it] [ARGM-TMP today]",
        "  [ARG0 Anna] left and [V sold] [ARG1 it] [ARGM-TMP today]",
    ]


def test_on_a_terminal_the_view_is_the_default(run: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Anna sold cars today\n", encoding="utf-8")
    command = [sys.executable, "-m", "headstart", "predict", str(run), "--in", str(tmp_path / "text.txt")]
    terminal, side = pty.openpty()
    subprocess.run(command, stdout=side, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    os.close(side)
    shown = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert "[V sold]" in "".join(part.partition("m")[2] for part in shown.split(COLOURED))


def test_a_page_to_look_at(cli, run: Path, tmp_path: Path) -> None:
    page = tmp_path / "new" / "roles.html"
    shown = cli("predict", run, "--html", page, input=TEXT).stdout
    assert shown == cli("predict", run, input=TEXT).stdout
    html = page.read_text(encoding="utf-8")
    assert "<title>Semantic roles</title>" in html
    assert html.count("<section>") == 2  # none for the blank line
    assert "http" not in html.replace("http-equiv", "")


def test_columns_of_plain_text_are_propbanks(cli, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.gold_conll"
    path.write_text(cli("predict", run, "--to", "conll", input=TEXT).stdout, encoding="utf-8")
    found = read_roles(path).sentences
    assert [sentence.words for sentence in found] == [tuple(line.split()) for line in TEXT.splitlines() if line]
    assert [[predicate.word for predicate in sentence.predicates or ()] for sentence in found] == [[1], [1]]


# --- compare ----------------------------------------------------------------------------------------------------------


def test_compare_counts_sentences_and_shows_some_with_their_roles(cli, columns: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    few = [
        "--set",
        "transfer.network.width=16",
        "--set",
        "transfer.fitting.min_steps=2",
        "--set",
        "transfer.fitting.epochs=1",
        "--quiet",
    ]
    given = ["--train", columns, "--dev", columns, "--rows", "scratch", "--labels", "5,10", "--seeds", "2"]
    assert "argument F1" in cli("compare", "srl", *given, *few, "--out", out).stdout
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert results["metric"] == "f1"
    assert results["baseline"]["title"].endswith("each predicate as ARG0")
    assert results["examples"]
    assert all(example["texts"][0]["title"] == "sentence" for example in results["examples"])
    assert "gold answer" in (out / "report.html").read_text(encoding="utf-8")


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = "d 0 0 Anna NNP * - - (ARG0*)\nd 0 1 sold VBD * sell sell.01 (V*)\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("(ARG0*)", "(ARG0*"), "roles.gold_conll:1: column 9 opens the bracket '(ARG0*', which is not"),
        (GOOD.replace("(ARG0*)", "*)"), "roles.gold_conll:1: column 9 closes a bracket that was not opened"),
        (GOOD.replace(" (ARG0*)", "").replace(" (V*)", ""), "roles.gold_conll:1: this sentence has 0 argument columns"),
        (GOOD.replace("(V*)", "*"), "roles.gold_conll:2: the word 'sold' has a frame in column 8, but no bracket (V*)"),
        (GOOD.replace("d 0 1 sold", "d 0 1 sold x"), "roles.gold_conll:2: has 10 columns, but line 1"),
        ("Anna B-PER\n", "roles.gold_conll:1: has 2 columns, separated by spaces. This is neither PropBank's layout"),
        ("", "roles.gold_conll: "),
        (GOOD.replace("(ARG0*)", "*"), "no predicate with arguments, so there is nothing to learn"),
    ],
)
def test_bad_files_are_one_sentence(cli, text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "roles.gold_conll"
    path.write_text(text, encoding="utf-8")
    assert says in cli.refusal("transfer", "srl", "--train", path, "--dev", path, "--out", tmp_path / "run", *FEW)
    assert not (tmp_path / "run").exists()


def test_a_file_with_other_names_of_roles_is_refused(cli, run: Path, sentences, tmp_path: Path) -> None:
    def renamed(predicate: Any) -> Any:
        spans = tuple(a if a.type == "V" else a._replace(type=f"A{a.type[3:]}") for a in predicate.arguments)
        return replace(predicate, arguments=spans)

    other = [replace(one, predicates=tuple(map(renamed, one.predicates))) for one in sentences]
    path = write_columns(tmp_path / "other.gold_conll", other)
    said = cli.refusal("evaluate", run, "--data", path)
    assert f"{path}: most of its arguments have roles that the training examples of" in said


def test_predictions_without_gold_cannot_be_scored(cli, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_text(json.dumps({"words": ["Anna", "left"], "predicates": [1]}) + "\n", encoding="utf-8")
    assert "bare.jsonl:1: a predicate must be an object with 'word' and 'arguments'" in (
        cli.refusal("evaluate", run, "--data", path)
    )
    assert objects(cli("predict", run, "--in", path, "--json").stdout)[0]["predicates"][0]["word"] == 1


def test_options_of_other_tasks_are_refused(cli, run: Path, columns: Path) -> None:
    assert "--column is not for semantic role labelling" in (
        cli.refusal("evaluate", run, "--data", columns, "--column", "3")
    )
    assert "No format called 'tsv'" in cli.refusal("predict", run, "--to", "tsv", input=TEXT)


def test_the_exit_code_is_2(run: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.gold_conll").write_text(GOOD.replace("(ARG0*)", "(ARG0*"), encoding="utf-8")
    command = [sys.executable, "-m", "headstart", "evaluate", str(run), "--data", str(tmp_path / "bad.gold_conll")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
