from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.errors import CheckpointError
from headstart.report.results import (
    Baseline,
    Cell,
    Comparison,
    Forgetting,
    LayerWeights,
    Run,
    TransferResults,
    read_results,
)

OLD_RUN: dict[str, Any] = {
    "seed": 0, "accuracy": 0.75, "macro_f1": 0.7, "steps": 40, "best_step": 30, "seconds": 2.5, "collapsed": False,
    "mix": {"input": {"weights": [0.4, 0.6], "gamma": 1.1}},
}  # fmt: skip
OLD_CELL = {
    "row": "elmo-frozen", "labels": 50, **OLD_RUN, "parameters": 9, "truncated": 1,
    "forgetting": {"before": 20.0, "after": 30.0},
}  # fmt: skip
OLD_RESULTS: dict[str, Any] = {
    "task": "sentiment", "headstart": "0.1.0", "labels": [50], "seeds": [0], "metric": "accuracy",
    "train": {"path": "train.csv", "examples": 60, "classes": {"neg": 30, "pos": 30}},
    "dev": {"path": "dev.csv", "examples": 4, "classes": {"neg": 2, "pos": 2}},
    "rows": [{"name": "elmo-frozen", "title": "ELMo, frozen", "source": "runs/e", "kind": "elmo", "how": "frozen",
              "pretraining_seconds": 60.0, "pretraining_scores": {"perplexity": 90.0}}],
    "cells": [OLD_CELL],
    "table": [{"row": "elmo-frozen", "labels": 50, "mean": 0.75, "low": 0.25, "high": 1.0, "spread": None,
               "scores": [0.75], "macro_f1": 0.7, "seconds": 2.5, "difference": None, "p": None, "collapsed": 0}],
    "labels_saved": [{"row": "elmo-frozen", "labels": 50, "equals": 80, "sentence": "It does."}],
    "advice": {"row": "elmo-frozen", "run": "models/elmo-frozen", "sentence": "Deploy it."},
    "notices": ["One."],
}  # fmt: skip
"""Everything as the version before wrote it."""


def kept(old: Any, new: Any) -> bool:
    """Whether all that is in `old` is in `new` too, which may have more keys."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and kept(value, new[key]) for key, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(map(kept, old, new))
    return bool(old == new)


def test_a_comparison_comes_back_from_its_file(finished: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(finished.as_json()))
    assert read_results(path) == finished


def test_results_of_the_version_before_open_and_keep_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(OLD_RESULTS))
    read = read_results(path)
    assert (read.metric, read.metric_title, read.baseline) == ("accuracy", "accuracy", None)
    assert read.cells[0].score == 0.75
    assert read.cells[0].mix["input"] == LayerWeights([0.4, 0.6], 1.1)
    assert read.cells[0].forgetting == Forgetting(20.0, 30.0)
    assert read.table[0].means == {"accuracy": 0.75, "macro_f1": 0.7}
    assert kept(OLD_RESULTS, read.as_json())
    assert read_results_again(read, path) == read


def read_results_again(results: Comparison, path: Path) -> Comparison:
    path.write_text(json.dumps(results.as_json()))
    return read_results(path)


def test_an_empty_comparison_has_no_advice(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({**OLD_RESULTS, "cells": [], "table": [], "labels_saved": [], "advice": {}}))
    read = read_results(path)
    assert read.advice is None
    assert read.as_json()["advice"] == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metric": "accuracy"}', json.dumps({**OLD_RESULTS, "rows": [1]})])
def test_what_is_no_comparison_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_results(path)
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"is not the results\.json of a comparison"):
        read_results(path)


def test_a_cell_has_its_counts_and_answers_in_its_own_file_only() -> None:
    counts = np.array([[1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])
    cell = Cell(
        row="bert", labels=50, seed=1, metric="f1", scores={"f1": 0.25, "precision": 0.5}, seconds=1.0, steps=3,
        best_step=2, collapsed=False, mix={}, parameters=4, truncated=0, counts=counts, answers=[["B-LOC"], []],
    )  # fmt: skip
    table = json.loads(json.dumps(cell.as_json()))
    assert (table["f1"], table["precision"], table["metric"]) == (0.25, 0.5, "f1")
    back = Cell.from_json(table)
    assert back == cell
    assert back.score == 0.25
    assert (back.counts.tolist(), back.answers) == (counts.tolist(), [["B-LOC"], []])
    assert cell.without_answers().as_json().keys() == table.keys() - {"counts", "answers"}


def test_a_row_is_collapsed_when_most_of_its_seeds_are(finished: Comparison) -> None:
    entry = finished.table[0]  # three seeds
    assert [replace(entry, collapsed=count).is_collapsed for count in range(4)] == [False, False, True, True]


def transfer_results(*scores: float) -> TransferResults:
    runs = [
        Run(seed=seed, metric="f1", scores={"f1": score, "precision": 0.5}, seconds=1.0, steps=9, best_step=seed,
            collapsed=False, mix={"input": LayerWeights([0.1 * seed, 1 - 0.1 * seed])})
        for seed, score in enumerate(scores)
    ]  # fmt: skip
    return TransferResults(
        task="ner", source="runs/b", kind="bert", how="finetune", labels=100, classes=["LOC", "PER"], dev=20,
        metric="f1", metric_title="F1", runs=runs, best_seed=1, truncated=2, parameters=7,
        forgetting=Forgetting(20.0, 30.0), baseline=Baseline("No entity", 0.0), notices=["One."],
    )  # fmt: skip


def test_transfer_results_have_mean_spread_and_the_best_runs_mix() -> None:
    results = transfer_results(0.5, 0.7)
    assert (results.scores, results.mean) == ([0.5, 0.7], pytest.approx(0.6))
    assert results.spread == pytest.approx(0.2 / 2**0.5)
    assert results.means == pytest.approx({"f1": 0.6, "precision": 0.5})
    assert results.mix == {"input": LayerWeights([0.1, 0.9])}
    assert replace(results, runs=results.runs[1:]).spread is None
    assert TransferResults.from_json(json.loads(json.dumps(results.as_json()))) == results


def test_transfer_results_of_the_version_before_open_and_keep_their_keys() -> None:
    old = {
        "task": "sentiment", "source": "scratch", "kind": "scratch", "how": "finetune", "labels": 20, "dev": 40,
        "classes": ["neg", "pos"], "accuracy": 0.75, "spread": None, "macro_f1": 0.7, "best_seed": 0, "truncated": 0,
        "parameters": 9, "mix": OLD_RUN["mix"], "forgetting": None, "runs": [OLD_RUN], "notices": [],
    }  # fmt: skip
    results = TransferResults.from_json(old)
    assert (results.metric, results.mean, results.best.best_step) == ("accuracy", 0.75, 30)
    assert kept(old, json.loads(json.dumps(results.as_json())))
