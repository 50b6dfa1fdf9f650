"""Coreference through the command line: columns, folders, JSON lines, plain text, GAP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.tasks.coref_writers import chains_as_json, columns_of
from headstart.tasks.gap import FIELDS

FAST = ["--seeds", "1", "--quiet", "--set", "network.width=16", "--set", "network.hidden=16", "--set=fitting.epochs=1"]
FIT = [*FAST, "--set", "fitting.min_steps=120", "--set", "fitting.learning_rate=0.02"]
FEW = [*FAST, "--set", "fitting.min_steps=2"]


@pytest.fixture(scope="module")
def documents(tiny_examples: dict[str, list[Any]]) -> list[Any]:
    return tiny_examples["coref"]


@pytest.fixture(scope="module")
def columns(documents: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("coref") / "all.conll"
    path.write_text("".join(columns_of(each, each.chains) for each in documents), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(cli, columns: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the ten documents, made by the command itself."""
    out = tmp_path_factory.mktemp("coref-run") / "run"
    done = cli("transfer", "coref", "--train", columns, "--dev", columns, "--out", out, *FIT)
    assert "dev CoNLL F1 100.0 %" in done.stdout
    assert "B-cubed F1 100.0 %" in done.stdout
    assert done.stderr == ""
    return out


def objects(shown: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown.splitlines()]


def gap_file(path: Path, rows: int = 2) -> Path:
    names = [*FIELDS, "URL"]
    text = "The cat likes nobody . She left ."
    row = ["", text, "She", str(text.index("She")), "cat", "4", "TRUE", "nobody", "14", "FALSE", "u"]
    lines = ["\t".join(names)] + ["\t".join([f"d-{n}", *row[1:]]) for n in range(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# --- labelled documents -----------------------------------------------------------------------------------------------


def test_columns_folders_and_json_lines_are_the_same_documents(
    cli, run: Path, columns: Path, documents: list[Any], tmp_path: Path
) -> None:
    lines = [json.dumps(chains_as_json(each, each.chains)) + "\n" for each in documents]
    (tmp_path / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, each in enumerate(documents):
        (folder / f"{number}.conll").write_text(columns_of(each, each.chains), encoding="utf-8")
    found = [cli("evaluate", run, "--data", data).stdout for data in (columns, tmp_path / "all.jsonl", folder)]
    assert found[0] == found[1] == found[2]
    assert found[0].startswith("10 documents: CoNLL F1 100.0 %, MUC F1 100.0 %, B-cubed F1 100.0 %, CEAF-e F1 100.0 %,")
    assert "LEA F1 100.0 %, mention F1 100.0 %" in found[0]
    as_json = json.loads(cli("evaluate", run, "--data", columns, "--json").stdout)
    assert (as_json["examples"], as_json["conll_f1"], as_json["parts"]["muc"]["recall"]) == (10, 1.0, 1.0)


def test_gap_is_scored_by_its_own_rules_and_never_learned(cli, run: Path, columns: Path, tmp_path: Path) -> None:
    data = gap_file(tmp_path / "gap.tsv")
    shown = cli("evaluate", run, "--data", data).stdout.splitlines()
    assert shown[0].startswith("2 documents: F1 ")
    assert "masculine F1 0.0 %, feminine F1 " in shown[0]
    assert shown[1] == "bias (feminine F1 / masculine F1): not defined, as one of the two is 0"
    found = json.loads(cli("evaluate", run, "--data", data, "--json").stdout)
    assert (found["metric"], found["bias"]) == ("f1", None)
    for train, dev in ((data, columns), (columns, data)):
        said = cli.refusal("transfer", "coref", "--train", train, "--dev", dev, "--out", tmp_path / "run", *FEW)
        assert said.startswith(f"{data}:2: is an example of GAP")
    assert not (tmp_path / "run").exists()


def test_compare_shows_sentences_with_their_chains(cli, columns: Path, tmp_path: Path) -> None:
    given = ["--train", columns, "--dev", columns, "--rows", "scratch", "--labels", "8", "--out", tmp_path / "c"]
    cli("compare", "coref", *given, "--seeds", "1", "--quiet", "--set", "transfer.fitting.min_steps=2")
    results = json.loads((tmp_path / "c" / "results.json").read_text(encoding="utf-8"))
    assert "of 2" in results["examples"][0]["texts"][0]["title"]
    assert " = " in results["examples"][0]["gold"]
    assert "CoNLL F1" in (tmp_path / "c" / "report.html").read_text(encoding="utf-8")


# --- predict ----------------------------------------------------------------------------------------------------------


def test_predicted_columns_and_objects_are_read_again(cli, run: Path, columns: Path, tmp_path: Path) -> None:
    shown = cli("predict", run, "--in", columns).stdout
    assert shown == columns.read_text(encoding="utf-8")  # the chains are all right, and the rest is kept
    again = cli("predict", run, "--in", columns, "--json").stdout
    (tmp_path / "found.jsonl").write_text(again, encoding="utf-8")
    assert "CoNLL F1 100.0 %" in cli("evaluate", run, "--data", tmp_path / "found.jsonl").stdout


def test_plain_text_is_one_document_or_one_per_line(cli, run: Path, documents: list[Any], tmp_path: Path) -> None:
    text, _ = documents[0].text_and_offsets()
    (gold,) = documents[0].chains
    (found,) = objects(cli("predict", run, "--json", input=text).stdout)
    assert found["text"] == text
    assert found["chains"] == [[list(mention) for mention in gold]]
    for chain in found["mentions"]:
        for one in chain:
            assert text[one["start"] : one["end"]] == one["text"]
    apart = objects(cli("predict", run, "--json", "--one-per-line", input=text).stdout)
    assert [each["text"] for each in apart] == text.split("\n")
    path = tmp_path / "story.txt"
    path.write_text(text, encoding="utf-8")
    in_columns = cli("predict", run, "--in", path).stdout.splitlines()
    assert in_columns[0] == "#begin document (story); part 000"
    assert in_columns[1].split("\t")[-1].startswith("(0")
    page = tmp_path / "page.html"
    shown = cli("predict", run, "--in", path, "--to", "view", "--html", page).stdout
    assert "[1 " in shown
    assert "<mark" in page.read_text(encoding="utf-8")


def test_a_document_of_one_word_and_blank_lines(cli, run: Path) -> None:
    found = objects(cli("predict", run, "--json", "--one-per-line", input="Hello\n\n.\n").stdout)
    assert [each["text"] for each in found] == ["Hello", "", "."]


def test_memory_is_told_and_changes_nothing(cli, run: Path, columns: Path) -> None:
    plain = cli("predict", run, "--in", columns)
    assert plain.stderr == ""
    done = cli("predict", run, "--in", columns, "--memory", "200MB")
    assert done.stdout == plain.stdout
    assert done.stderr.startswith("headstart: The longest document has ")
    assert "beside the encoder" in cli("evaluate", run, "--data", columns, "--memory", "0.2GB").stderr
    assert "Raise --memory" in cli.refusal("evaluate", run, "--data", columns, "--memory", "1kB")
    assert "Raise --memory" in cli.refusal("predict", run, "--in", columns, "--memory", "1kB")
    said = cli.refusal("predict", run, "--in", columns, "--memory", "much")
    assert "memory" in said


def test_memory_and_singletons_are_settings_of_a_run(cli, columns: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    given = ["--memory", "1GB", "--set", "network.singletons=true"]
    cli("transfer", "coref", "--train", columns, "--dev", columns, "--out", out, *FEW, *given)
    saved = (out / "config.toml").read_text(encoding="utf-8")
    assert "memory = 1000000000\n" in saved
    assert "singletons = true\n" in saved
    assert "beside the encoder" in cli("evaluate", out, "--data", columns).stderr


def test_options_of_other_tasks_are_refused(cli, run: Path, columns: Path, labelled, tmp_path: Path) -> None:
    assert "--separator is not for coreference resolution" in cli.refusal("predict", run, "--separator", ";", input="x")
    given = ["--train", labelled[0], "--dev", labelled[1], "--out", tmp_path / "c", *FEW[:3]]
    cli("transfer", "classify", *given, "--set=fitting.min_steps=2", "--set=fitting.epochs=0.1")
    assert "--memory is for coreference" in cli.refusal("predict", tmp_path / "c", "--memory", "1GB", input="x")
    assert "--one-per-line is not for" in cli.refusal("predict", tmp_path / "c", "--one-per-line", input="x")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "a.conll",
            "#begin document (a); part 000\na\t0\t0\tHi\t0)\n\n#end document\n",
            "a.conll:2: '0)' ends a mention",
        ),
        ("a.conll", "#begin document (a); part 000\na\t0\t0\tHi\t(0\n\n#end document\n", "a.conll:2: '(0' begins a"),
        ("a.conll", "Hi\n", "a.conll:1: is not in a document"),
        ("a.jsonl", '{"sentences": [["a"]]}\n', "a.jsonl:1: needs either 'chains' or 'clusters'"),
        ("a.jsonl", '{"sentences": [["a"]], "chains": [[[0, 2]]]}\n', "a.jsonl:1: a mention in 'chains' is"),
        ("a.tsv", "x\ty\n1\t2\n", "a.tsv:1: has no column 'ID'"),
    ],
)
def test_bad_files_are_one_sentence(cli, run: Path, name: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert says in cli.refusal("evaluate", run, "--data", tmp_path / name)


def test_the_help_names_coreference(cli) -> None:
    for command in ("transfer", "predict", "compare"):
        assert "coref" in cli(command, "--help").stdout
