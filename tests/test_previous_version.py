"""What version 0.1.0 wrote still opens and gives the same numbers; `data/previous_version/README.md` tells of it."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headstart
from headstart.text.building import SEAL

FILES = Path(__file__).parent / "data" / "previous_version"
EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
FITTING = {
    "min_steps": 40,
    "learning_rate": 0.05,
    "encoder_rate": 0.02,
    "epochs": 2.0,
    "batch": 4,
    "evaluations": 2,
}
CLOSE = {"rtol": 1e-6, "atol": 1e-6}
TRAINED_ALIKE = {"rtol": 0, "atol": 1e-4}
"""After further steps of training, in which each processor rounds a little differently."""


@pytest.fixture(autouse=True)
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test works in its own copy, where the paths are those that the files were made with."""
    folder = tmp_path / "files"
    shutil.copytree(FILES, folder)
    monkeypatch.chdir(folder)
    return folder


def check_vectors(run: str, expected: list[Any], close: dict[str, float]) -> None:
    found = headstart.load(run).represent(EXPECTED["sentences"])
    assert len(found) == len(expected)
    for vectors, wanted in zip(found, expected, strict=True):
        assert vectors.shape == np.shape(wanted)
        np.testing.assert_allclose(vectors, wanted, **close)


def place(name: str, parent: str) -> str:
    """What was exported or imported is both an encoder and a classifier, and has its own folder."""
    return name if name in ("huggingface", "imported") else f"{parent}/{name}"


@pytest.mark.parametrize("name", EXPECTED["vectors"])
def test_a_pretrained_encoder_gives_the_same_vectors(name: str) -> None:
    check_vectors(place(name, "pretrained"), EXPECTED["vectors"][name], CLOSE)


@pytest.mark.parametrize("name", EXPECTED["probabilities"])
def test_a_classifier_gives_the_same_probabilities(name: str) -> None:
    classifier = headstart.load_classifier(place(name, "tasks"))
    assert classifier.labels == ["bad", "good"]
    np.testing.assert_allclose(classifier.predict_proba(EXPECTED["texts"]), EXPECTED["probabilities"][name], **CLOSE)


@pytest.mark.parametrize("name", ["static_lstm", "elmo_attention", "bert_first", "scratch"])
def test_a_classifier_scores_what_its_results_say(name: str) -> None:
    results = json.loads(Path("tasks", name, "results.json").read_text(encoding="utf-8"))
    scores = headstart.evaluate(f"tasks/{name}", "text/dev.csv")
    assert scores["accuracy"] == results["accuracy"]
    assert scores["macro_f1"] == pytest.approx(results["macro_f1"])


def check_estimator(estimator: headstart.TextClassifier) -> None:
    expected = EXPECTED["estimator"]
    renamed = {"seed": "random_state", "batch": "batch_size", "validation": "validation_fraction"}
    parameters = {renamed.get(name, name): value for name, value in expected["parameters"].items()}
    assert parameters.items() <= estimator.get_params().items()
    assert estimator.classes_.tolist() == expected["classes"]
    assert estimator.classes_.dtype.kind == "i"
    assert estimator.predict(EXPECTED["texts"]).tolist() == expected["predicted"]
    np.testing.assert_allclose(estimator.predict_proba(EXPECTED["texts"]), expected["probabilities"], **CLOSE)


def test_a_saved_estimator_is_the_same() -> None:
    check_estimator(headstart.TextClassifier.load("estimator"))


def test_a_pickled_estimator_is_the_same() -> None:
    check_estimator(pickle.loads(Path("estimator.pickle").read_bytes()))


def test_a_stopped_pretraining_goes_on_to_the_same_end(
    tmp_path: Path, with_threads: Callable[[int], AbstractContextManager[None]]
) -> None:
    log = Path("pretrained/bert/log.jsonl")
    before = log.read_bytes()
    # Its text is no longer where config.toml says, so it is given again.
    run = headstart.pretrain(
        "bert", "text/text.txt", out="pretrained/bert", resume=True, cache=tmp_path / "cache", workers=1
    )
    with with_threads(1):  # as before: each thread draws its own dropout
        list(run)
    after = log.read_bytes()
    assert after.startswith(before)
    lines = [json.loads(line) for line in after.splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4, 5, 6]
    check_vectors("pretrained/bert", EXPECTED["resumed"], TRAINED_ALIKE)


def compare(cache: Path) -> dict[str, Any]:
    """The comparison as it was asked for, and its results.json afterwards."""
    settings = {"transfer.network.cell": "none", "transfer.network.pool": "mean", "transfer.fitting": FITTING}
    run = headstart.compare(
        "sentiment",
        train="text/train.csv",
        dev="text/dev.csv",
        out="comparison",
        with_="pretrained/skipgram",
        labels=[4, 8],
        seeds=2,
        settings=settings,
        cache=cache,
    )
    list(run)
    return read_results()


def read_results() -> dict[str, Any]:
    results: dict[str, Any] = json.loads(Path("comparison/results.json").read_text(encoding="utf-8"))
    return results


def common(rows: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the keys that the version before wrote; later ones write more."""
    return [{key: row[key] for key in old} for row, old in zip(rows, before, strict=True)]


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in ("seconds", "mix")} for row in rows]


def test_a_finished_comparison_is_not_fitted_again(tmp_path: Path) -> None:
    before = read_results()
    cells = {path.name: path.read_bytes() for path in Path("comparison/cells").iterdir()}
    results = compare(tmp_path / "cache")
    for key in ("labels", "seeds", "metric"):
        assert results[key] == before[key]
    for key in ("cells", "table"):
        assert common(results[key], before[key]) == before[key]
    assert {path.name: path.read_bytes() for path in Path("comparison/cells").iterdir()} == cells
    assert not (tmp_path / "cache" / "features").exists()


@pytest.mark.parametrize("name", ["static-frozen--8--1", "scratch--4--0"])
def test_a_comparison_that_lacks_a_cell_is_finished_with_the_same_table(name: str, tmp_path: Path) -> None:
    before, path = read_results(), Path("comparison/cells", f"{name}.json")
    cell = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    results = compare(tmp_path / "cache")
    for key in ("cells", "table"):
        assert without_seconds(common(results[key], before[key])) == without_seconds(before[key])
    answers = json.loads(path.read_text(encoding="utf-8"))["answers"]
    names = json.loads(Path("comparison/gold.json").read_text(encoding="utf-8"))["names"]
    assert [names.index(answer["label"]) for answer in answers] == cell["predicted"]
    probabilities = [list(answer["probabilities"].values()) for answer in answers]
    np.testing.assert_allclose(probabilities, cell["probabilities"], **TRAINED_ALIKE)


def carry_elmo_over(out: str, cache: str) -> None:
    list(
        headstart.transfer(
            "sentiment",
            source="pretrained/elmo",
            train="text/train.csv",
            dev="text/dev.csv",
            out=out,
            seeds=1,
            settings={"network": {"pool": "attention", "width": 4}, "fitting": FITTING},
            cache=cache,
        )
    )


def test_cached_features_are_found_and_are_what_would_be_computed() -> None:
    stored = sorted(Path("home/features").rglob("*"))
    assert stored
    changed = [path.stat().st_mtime_ns for path in stored]
    carry_elmo_over("found", "home")
    assert sorted(Path("home/features").rglob("*")) == stored
    assert [path.stat().st_mtime_ns for path in stored] == changed

    carry_elmo_over("computed", "empty")
    computed = sorted(path for path in Path("empty/features").rglob("*") if path.name != SEAL)
    assert [path.relative_to("empty") for path in computed] == [path.relative_to("home") for path in stored]
    layers = [next(Path(home).rglob("layers.bin")) for home in ("home", "empty")]
    np.testing.assert_allclose(*(np.fromfile(path, dtype=np.float32) for path in layers), **CLOSE)
