"""The comparison as a whole, on tiny runs: what it leaves behind, going on after a stop, and what it refuses."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from typer.testing import CliRunner

import headstart.comparison.cells as cells_room
from headstart.cli.compare import compare as compare_command
from headstart.comparison.compare import CompareEvent, compare
from headstart.comparison.events import Began, CellBegan, CellDone, Compared, RowPretraining
from headstart.errors import CheckpointError, ConfigError, DataError, HeadstartError
from headstart.exporting import export
from headstart.pretraining.events import Finished, Joined
from headstart.pretraining.loop import Step
from headstart.pretraining.pretrain import pretrain
from headstart.progress import Notice, as_dict, result_of
from headstart.report.results import Baseline, Comparison
from headstart.report.results_json import comparison_to_json, read_comparison
from headstart.transfer.classifier import load_classifier

QUICK = {"transfer": {"fitting": {"min_steps": 4, "epochs": 1.0, "evaluations": 2}, "network": {"width": 8}}}
TINY: dict[str, dict[str, Any]] = {
    "static": {"objective.dim": 8, "tokenizer.min_count": 1},
    "elmo": {"size": "tiny", "encoder.cell": 16, "encoder.projection": 8, "training.batch": 200},
    "bert": {
        "size": "tiny", "encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    for kind, settings in TINY.items():
        list(pretrain(kind, corpus, out=folder / kind, settings=settings, steps=2, cache=folder / "cache"))
    return {kind: folder / kind for kind in TINY}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A word tells the label."""
    folder = tmp_path_factory.mktemp("examples")
    rng = random.Random(0)
    for name, count in (("train", 60), ("dev", 20)):
        lines = ["text,label"]
        for number in range(count):
            verdict, label = (("likes", "pos"), ("hates", "neg"))[number % 2]
            lines.append(f"The {rng.choice(['cat', 'dog'])} {verdict} film {name} {number} .,{label}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: folder / f"{name}.csv" for name in ("train", "dev")}


def arguments(examples: dict[str, Path], **options: Any) -> dict[str, Any]:
    return {**examples, "labels": (4, 10), "seeds": 2, "settings": QUICK, **options}


def without_times(results: Comparison) -> Comparison:
    """What must be the same each time."""
    cells = [replace(cell, seconds=0.0) for cell in results.cells]
    return replace(results, advice=None, cells=cells, table=[replace(entry, seconds=0.0) for entry in results.table])


def test_a_comparison_leaves_table_models_and_report(
    runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    events = list(compare(**arguments(examples, with_=list(runs.values()), out=out)))
    began = next(event for event in events if isinstance(event, Began))
    names = ["scratch", "static-frozen", "elmo-frozen", "elmo-finetune", "stack-frozen", "bert-finetune"]
    assert [row.name for row in began.rows] == names
    assert (began.cells, began.done) == (24, 0)
    order = [(event.labels, event.seed, event.row) for event in events if isinstance(event, CellBegan)]
    assert order == [(labels, seed, name) for labels in (4, 10) for seed in (0, 1) for name in names]
    done = [event for event in events if isinstance(event, CellDone)]
    assert [event.done for event in done] == list(range(1, 25))
    assert done[-1].seconds_left == 0.0
    assert isinstance(events[-1], Compared)

    results = json.loads((out / "results.json").read_text())
    assert results == json.loads(json.dumps(comparison_to_json(events[-1].results)))
    assert read_comparison(out / "results.json") == events[-1].results
    assert results["baseline"] == {"title": "Always 'neg'", "score": 0.5}
    assert [row["name"] for row in results["rows"]] == names
    assert [row["kind"] for row in results["rows"]] == ["scratch", "static", "elmo", "elmo", "stack", "bert"]
    assert results["rows"][2]["pretraining_seconds"] > 0
    assert results["rows"][2]["pretraining_scores"]["perplexity"] > 1
    assert results["train"] == {"path": "train.csv", "examples": 60, "classes": {"neg": 30, "pos": 30}}
    assert (results["labels"], results["seeds"]) == ([4, 10], [0, 1])
    assert len(results["table"]) == 12
    for entry in results["table"]:
        own = [c["accuracy"] for c in results["cells"] if (c["row"], c["labels"]) == (entry["row"], entry["labels"])]
        assert entry["scores"] == own
        assert entry["mean"] == pytest.approx(sum(own) / 2)
    tuned = [c for c in results["cells"] if c["row"] in ("elmo-finetune", "bert-finetune") and c["labels"] == 10]
    assert all(cell["forgetting"]["after"] > 1 for cell in tuned)
    assert all(cell["forgetting"] is None for cell in results["cells"] if cell not in tuned)
    frozen = next(cell for cell in results["cells"] if cell["row"] == "elmo-frozen")
    assert sum(frozen["mix"]["input"]["weights"]) == pytest.approx(1.0)
    assert {"results.csv", "report.html", "learning_curve.svg"} <= {path.name for path in out.iterdir()}

    texts = [line.rsplit(",", 1)[0] for line in examples["dev"].read_text().splitlines()[1:]]
    for name in names:
        best = max(c["accuracy"] for c in results["cells"] if (c["row"], c["labels"]) == (name, 10))
        record = json.loads((out / "models" / f"{name}.json").read_text())
        assert record["accuracy"] == best
        predicted = load_classifier(out / "models" / name).predict(texts)
        gold = [line.rsplit(",", 1)[1] for line in examples["dev"].read_text().splitlines()[1:]]
        assert sum(map(str.__eq__, predicted, gold)) / len(gold) == pytest.approx(best)


def test_stopped_anywhere_it_goes_on_and_ends_like_one_never_stopped(
    runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path
) -> None:
    asked = arguments(examples, with_=[runs["static"], runs["bert"]])
    *_, whole = compare(**asked, out=tmp_path / "whole")
    fitted: list[tuple[str, int, int]] = []
    for stop_after in (1, 4, 100):
        for event in compare(**asked, out=tmp_path / "out"):
            if isinstance(event, CellDone):
                fitted.append(event.cell.key)
                stop_after -= 1
            if isinstance(event, CellBegan) and stop_after <= 0:
                break
    assert isinstance(event, Compared)
    assert len(fitted) == len(set(fitted)) == 12
    assert without_times(event.results) == without_times(whole.results)
    for name in ("scratch", "static-frozen", "bert-finetune"):
        first, second = (tmp_path / run / "models" / name / "weights.safetensors" for run in ("whole", "out"))
        assert first.read_bytes() == second.read_bytes()
    again = list(compare(**asked, out=tmp_path / "out"))
    assert [type(event) for event in again] == [Began, Compared]
    assert again[-1].results == event.results
    with pytest.raises(CheckpointError, match="'seeds' was"):
        list(compare(**{**asked, "seeds": 3}, out=tmp_path / "out"))


def test_a_broken_cell_is_fitted_again(examples: dict[str, Path], tmp_path: Path) -> None:
    asked = arguments(examples, rows=["scratch"], out=tmp_path / "out", labels=(4,))
    *_, first = compare(**asked)
    (tmp_path / "out" / "cells" / "scratch--4--1.json").write_text('{"row": "scra')
    events = list(compare(**asked))
    assert [(event.labels, event.seed) for event in events if isinstance(event, CellBegan)] == [(4, 1)]
    assert without_times(events[-1].results) == without_times(first.results)


def test_features_are_gathered_once_for_each_frozen_row(
    runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[str] = []
    real = cells_room.gather_features

    def counting(start: Any, task: Any, found: list[Any], *rest: Any) -> Any:
        gathered.append(start.kind)
        assert len(found) == len({task.key(example) for example in found})
        return real(start, task, found, *rest)

    monkeypatch.setattr(cells_room, "gather_features", counting)
    rows = ["static-frozen", "elmo-frozen"]
    list(compare(**arguments(examples, with_=[runs["elmo"], runs["static"]], rows=rows, out=tmp_path / "out")))
    assert gathered == ["static", "elmo"]


def test_text_pretrains_what_is_missing_and_a_stop_there_is_gone_on_from(
    corpus: Path, runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path
) -> None:
    made = {kind: {**table_of(TINY[kind]), "training": {"steps": 3, "batch": 256}} for kind in ("static", "bert")}
    settings = {**QUICK, "pretrain": made}
    asked = arguments(
        examples, text=corpus, with_=[runs["elmo"]], settings=settings, labels=(4,), seeds=1, cache=tmp_path / "cache"
    )
    for event in compare(**asked, out=tmp_path / "out"):
        if isinstance(event, Step) and (tmp_path / "out" / "pretrained" / "static.json").exists():
            break
    assert (tmp_path / "out" / "pretrained" / "bert" / "log.jsonl").exists()
    events = list(compare(**asked, out=tmp_path / "out"))
    assert [event.kind for event in events if isinstance(event, RowPretraining)] == ["bert"]
    assert any(isinstance(event, Notice) and event.text == "Going on from step 1." for event in events)
    assert next(event for event in events if isinstance(event, Finished)).steps == 3
    rows = {row.name: row for row in events[-1].results.rows}
    assert list(rows) == [
        "scratch", "static-frozen", "elmo-frozen", "elmo-finetune", "stack-frozen", "bert-finetune",
    ]  # fmt: skip
    assert rows["bert-finetune"].source.endswith("pretrained/bert")
    assert rows["elmo-frozen"].source == str(runs["elmo"])
    again = list(compare(**asked, out=tmp_path / "out"))
    assert [type(event) for event in again] == [Began, Compared]


def table_of(settings: dict[str, Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        table.setdefault(section, {})[name] = value
    return {**table.pop("", {}), **table}


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"task": "sentimant"}, ConfigError, "Did you mean 'sentiment'"),
        ({"labels": (4, 100)}, DataError, "has 60 examples, fewer than the 100"),
        ({"labels": ("most",)}, ConfigError, "--labels"),
        ({"seeds": 0}, ConfigError, "--seeds"),
        ({"budget": "soon"}, ConfigError, "--budget takes a time"),
        ({"rows": ["scratch", "elmo-fine"]}, ConfigError, "Did you mean 'elmo-finetune'"),
        ({"settings": {"transfer.fitting.epoch": 3}}, ConfigError, "Did you mean 'epochs'"),
        ({"settings": {"fitting.epochs": 3}}, ConfigError, "'fitting' cannot be set"),
        ({"settings": {"transfer.how": "frozen"}}, ConfigError, "--rows"),
        ({"settings": {"pretrain.bert.encoder.layer": 3}}, ConfigError, "Did you mean 'layers'"),
        ({"text": "none.txt"}, DataError, "none.txt"),
        ({"text": "none.txt", "rows": ["scratch"]}, DataError, "none.txt"),
        ({"with_": "none"}, CheckpointError, "none"),
        ({"train": "none.csv"}, DataError, "none.csv"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_made(
    options: dict[str, Any], error: type[Exception], says: str, corpus: Path, examples: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        list(compare(**{**arguments(examples, text=corpus, out=tmp_path / "out"), **options}))
    assert not (tmp_path / "out").exists()


def test_a_column_of_the_text_that_is_not_found_is_set_as_compare_sets_it(
    examples: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "text.csv").write_text("number,body of it\n1,A film .\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"--set pretrain\.text\.field=NAME"):
        list(compare(**arguments(examples, text=tmp_path / "text.csv", out=tmp_path / "out")))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # numpy's, as the loss becomes nan
@pytest.mark.parametrize(
    ("row", "setting", "says"),
    [
        ("scratch", "rows.scratch.fitting.learning_rate", r"--set rows\.scratch\.fitting\.learning_rate="),
        ("bert-finetune", "pretrain.bert.optimizer.learning_rate", r"--set pretrain\.bert\.optimizer\.learning_rate="),
        ("static-frozen", "pretrain.static.size", r"--set pretrain\.static\.objective\.dim="),
    ],
)
def test_what_an_error_advises_is_a_setting_of_the_comparison(
    row: str, setting: str, says: str, corpus: Path, examples: dict[str, Path], tmp_path: Path
) -> None:
    small = {f"pretrain.bert.{key}": value for key, value in TINY["bert"].items()}
    settings = {**small, "pretrain.bert.training.steps": 3, setting: "tiny" if setting.endswith("size") else 1e38}
    asked = arguments(examples, text=corpus, rows=[row], labels=(4,), seeds=1, cache=tmp_path / "cache")
    with pytest.raises(HeadstartError, match=says):
        list(compare(**{**asked, "settings": settings, "out": tmp_path / "out"}))


def test_one_row_can_have_settings_of_its_own(runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path) -> None:
    settings = {**QUICK, "rows.elmo-frozen.fitting.min_steps": 7, "rows.elmo-frozen.fitting.patience": 9}
    options = arguments(examples, with_=runs["elmo"], rows=["scratch", "elmo-frozen"], labels=(4,), seeds=1)
    *_, last = compare(**{**options, "settings": settings, "out": tmp_path / "out"})
    assert {cell.row: cell.steps for cell in last.results.cells} == {"scratch": 4, "elmo-frozen": 7}
    wrong = {**options, "settings": {"rows.elmo-frzen.fitting.min_steps": 7}, "out": tmp_path / "wrong"}
    with pytest.raises(ConfigError, match=r"'rows.elmo-frzen' cannot be set.*Did you mean 'elmo-frozen'"):
        list(compare(**wrong))
    with pytest.raises(ConfigError, match=r"'scratch.how' cannot be set"):
        compare(**{**wrong, "settings": {"rows.scratch.how": "frozen"}})
    assert not (tmp_path / "wrong").exists()


def test_an_encoder_from_elsewhere_stands_beside_the_one_that_the_text_gives(
    runs: dict[str, Path], corpus: Path, examples: dict[str, Path], tmp_path: Path
) -> None:
    result_of(export(runs["bert"], "hf", tmp_path / "theirs"))
    short = {f"pretrain.{kind}.training.steps": 2 for kind in TINY}
    small = {f"pretrain.bert.{key}": value for key, value in TINY["bert"].items()}
    options = arguments(examples, text=corpus, with_=tmp_path / "theirs", labels=(4,), seeds=1)
    settings = {**QUICK, **short, **small, "pretrain.static.tokenizer.min_count": 1}
    *_, last = compare(**{**options, "rows": ["bert-finetune"], "settings": settings, "out": tmp_path / "out"})
    assert [row.title for row in last.results.rows] == ["BERT (own), fine-tuned", "BERT (theirs), fine-tuned"]
    alone = {**options, "rows": ["bert-finetune:theirs"], "settings": QUICK, "out": tmp_path / "alone"}
    events = list(compare(**{**alone, "text": ()}))
    assert not any(isinstance(event, RowPretraining) for event in events)
    assert not any(isinstance(event, Notice) and "forgot" in event.text for event in events)


def test_a_model_with_one_answer_for_everything_is_not_advised(tmp_path: Path) -> None:
    """Labels 95 to 5, and too few steps to learn anything from them."""
    for name in ("train", "dev"):
        lines = [f"The film {name} {number} .,{'spam' if number % 20 == 0 else 'mail'}" for number in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    files = {name: tmp_path / f"{name}.csv" for name in ("train", "dev")}
    *_, last = compare(**arguments(files, rows=["scratch"], labels=("all",), out=tmp_path / "out"))
    assert [(cell.collapsed, cell.score) for cell in last.results.cells] == [(True, 0.95)] * 2
    assert last.results.baseline == Baseline("Always 'mail'", 0.95)
    assert last.results.advice.row is None
    assert last.results.advice.sentence.startswith("Deploy none of these yet")


def test_every_event_is_plain_json(
    corpus: Path, runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path
) -> None:
    """Of a comparison that pretrains, gathers features, fits and measures forgetting. `Joined` tells of processes that
    torchrun started, and a comparison is made for one."""
    made = {**table_of(TINY["bert"]), "training": {"steps": 6, "batch": 256}}
    asked = arguments(examples, text=corpus, with_=runs["elmo"], labels=(4,), seeds=1, cache=tmp_path / "cache")
    rows = ["scratch", "elmo-frozen", "elmo-finetune", "bert-finetune"]
    settings = {**QUICK, "pretrain": {"bert": made}}
    events = list(compare(**{**asked, "rows": rows, "settings": settings, "dev": None, "out": tmp_path / "out"}))
    assert {type(event) for event in events} == set(get_args(CompareEvent)) - {Joined}
    for event in events:
        table = as_dict(event)
        assert table["event"] == type(event).__name__
        text = json.dumps(table)
        assert json.loads(text) == table
        assert "object at 0x" not in text
        assert "tensor(" not in text


def test_a_comparison_of_the_version_before_goes_on(examples: dict[str, Path], tmp_path: Path) -> None:
    """Its cells told the predicted class and its probabilities, and had no metric."""
    asked = arguments(examples, rows=["scratch"], labels=(4,), out=tmp_path / "out")
    *_, first = compare(**asked)
    for path in (tmp_path / "out" / "cells").iterdir():
        cell = json.loads(path.read_text())
        answers = cell.pop("answers")
        for key in ("counts", "metric", "scores"):
            del cell[key]
        cell["predicted"] = [["neg", "pos"].index(answer["label"]) for answer in answers]
        cell["probabilities"] = [list(answer["probabilities"].values()) for answer in answers]
        path.write_text(json.dumps(cell))
    again = list(compare(**asked))
    assert [type(event) for event in again] == [Began, Compared]
    assert again[-1].results == first.results


def test_no_message_names_an_option_that_compare_lacks(
    runs: dict[str, Path], examples: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    """The held-out text of a run is gone: forgetting cannot be measured, and no option of `compare` would help."""
    moved = Path(shutil.copy(corpus, tmp_path / "moved.txt"))
    list(pretrain("bert", moved, out=tmp_path / "bert", settings=TINY["bert"], steps=2, cache=tmp_path / "cache"))
    moved.unlink()
    asked = arguments(examples, with_=tmp_path / "bert", rows=["bert-finetune"], labels=(4,), seeds=1)
    events = list(compare(**asked, out=tmp_path / "out", cache=tmp_path / "other"))
    told = [event.text for event in events if isinstance(event, Notice) and "forgot" in event.text]
    assert told
    assert not any("--held-out" in text for text in told)


def command(*arguments: str | Path) -> Any:
    app = typer.Typer()
    app.command()(compare_command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_the_command_shows_the_table_and_the_path(
    runs: dict[str, Path], examples: dict[str, Path], tmp_path: Path
) -> None:
    flags = ["sentiment", "--train", examples["train"], "--dev", examples["dev"], "--with", runs["elmo"]]
    flags += ["--rows", "scratch,elmo-frozen", "--labels", "4,all", "--seeds", "1", "--out", tmp_path / "out"]
    flags += ["--set", "transfer.fitting.min_steps=4", "--set", "transfer.fitting.epochs=1"]
    loud = command(*flags)
    assert loud.exit_code == 0, loud.output
    assert "2 rows, 4, 60 labelled examples, 1 seed: 4 runs." in loud.stderr
    assert "Baseline: Always 'neg', 50.0 %." in loud.stderr
    assert "ELMo, frozen, 60 labelled examples, seed 0:" in loud.stderr
    assert "text classification: accuracy in % on dev.csv" in " ".join(loud.stdout.split())
    assert "ELMo, frozen: words" in loud.stdout
    assert "Always 'neg'" in loud.stdout
    assert "Deploy " in loud.stdout
    assert loud.stdout.splitlines()[-1] == str(tmp_path / "out" / "report.html")
    quiet = command(*flags, "--quiet")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert "Scratch" in quiet.stdout
    assert "Deploy" not in quiet.stdout
    assert quiet.stdout.splitlines()[-1] == str(tmp_path / "out" / "report.html")


def test_encoders_given_side_by_side_need_not_be_given_alone(
    labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    train, dev = labelled
    pair = f"{pretrained_runs['static']}+{pretrained_runs['elmo']}"
    settings = {"transfer.fitting.min_steps": 2, "transfer.fitting.epochs": 0.1}
    job = compare(
        train=train,
        dev=dev,
        with_=pair,
        rows=["stack-frozen"],
        labels=[6],
        seeds=1,
        settings=settings,
        report=False,
        out=tmp_path / "c",
    )
    results = result_of(job)
    assert [row.name for row in results.rows] == ["stack-frozen"]
    assert not (tmp_path / "c" / "report.html").exists()
    assert read_comparison(tmp_path / "c" / "results.json") == results
    steps = [step for step, _ in results.cells[0].curve]
    assert results.cells[0].best_step in steps
    assert steps == sorted(steps)
