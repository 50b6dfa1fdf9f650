from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.errors import CheckpointError
from headstart.report.results import Cell, Comparison, Forgetting, LayerWeights, TransferResults
from headstart.report.results_json import (
    cell_from_json,
    cell_to_json,
    comparison_to_json,
    read_comparison,
    transfer_from_json,
    transfer_to_json,
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
    path.write_text(json.dumps(comparison_to_json(finished)))
    assert read_comparison(path) == finished
    assert finished.examples


def test_results_of_the_version_before_open_and_keep_their_keys(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(OLD_RESULTS))
    read = read_comparison(path)
    assert (read.task_title, read.metric, read.metric_title) == ("sentiment", "accuracy", "accuracy")
    assert (read.baseline, read.examples) == (None, [])
    assert read.cells[0].score == 0.75
    assert read.cells[0].mix["input"] == LayerWeights([0.4, 0.6], 1.1)
    assert read.cells[0].forgetting == Forgetting(20.0, 30.0)
    assert read.table[0].means == {"accuracy": 0.75, "macro_f1": 0.7}
    assert kept(OLD_RESULTS, comparison_to_json(read))
    assert written_and_read(read, path) == read


def written_and_read(results: Comparison, path: Path) -> Comparison:
    path.write_text(json.dumps(comparison_to_json(results)))
    return read_comparison(path)


def test_an_empty_comparison_has_no_advice(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({**OLD_RESULTS, "cells": [], "table": [], "labels_saved": [], "advice": {}}))
    read = read_comparison(path)
    assert read.advice is None
    assert comparison_to_json(read)["advice"] == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"metric": "accuracy"}', json.dumps({**OLD_RESULTS, "rows": [1]})])
def test_what_is_no_comparison_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_comparison(path)
    path.write_text(text)
    with pytest.raises(CheckpointError, match=r"is not the results\.json of a comparison"):
        read_comparison(path)


def test_a_cell_has_its_counts_and_answers_in_its_own_file_only() -> None:
    counts = np.array([[1.0, 2.0, 1.0], [0.0, 1.0, 3.0]])
    cell = Cell(
        row="bert", labels=50, seed=1, metric="f1", scores={"f1": 0.25, "precision": 0.5}, seconds=1.0, steps=3,
        best_step=2, collapsed=False, mix={}, parameters=4, truncated=0, counts=counts, answers=[["B-LOC"], []],
    )  # fmt: skip
    table = json.loads(json.dumps(cell_to_json(cell)))
    assert (table["f1"], table["precision"], table["metric"]) == (0.25, 0.5, "f1")
    back = cell_from_json(table)
    assert back == cell
    assert back.score == 0.25
    assert (back.counts.tolist(), back.answers) == (counts.tolist(), [["B-LOC"], []])
    assert cell_to_json(cell.without_answers()).keys() == table.keys() - {"counts", "answers"}


def test_transfer_results_come_back_from_json(transferred: TransferResults) -> None:
    assert transfer_from_json(json.loads(json.dumps(transfer_to_json(transferred)))) == transferred


def test_transfer_results_of_the_version_before_open_and_keep_their_keys() -> None:
    old = {
        "task": "sentiment", "source": "scratch", "kind": "scratch", "how": "finetune", "labels": 20, "dev": 40,
        "classes": ["neg", "pos"], "accuracy": 0.75, "spread": None, "macro_f1": 0.7, "best_seed": 0, "truncated": 0,
        "parameters": 9, "mix": OLD_RUN["mix"], "forgetting": None, "runs": [OLD_RUN], "notices": [],
    }  # fmt: skip
    results = transfer_from_json(old)
    assert (results.metric, results.mean, results.best.best_step) == ("accuracy", 0.75, 30)
    assert kept(old, json.loads(json.dumps(transfer_to_json(results))))
