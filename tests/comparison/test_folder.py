from __future__ import annotations

import json
from pathlib import Path

import pytest

from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.rows import Row
from headstart.errors import CheckpointError

ROW = Row("scratch", "Scratch", "scratch", "scratch", "scratch", None)
PLAN = {"labels": [50], "train": {"content": "abc"}}


def cell(**changes: object) -> dict:
    whole = {"row": "scratch", "labels": 50, "seed": 0, "accuracy": 0.5, "macro_f1": 0.4, "seconds": 1.0}
    return {**whole, "predicted": [0, 1], "probabilities": [[0.6, 0.4], [0.2, 0.8]], **changes}


def test_the_same_plan_goes_on_and_another_is_refused(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path / "out")
    folder.check(PLAN, resume=True)
    with folder.claimed(PLAN, {"gold": [0]}):
        folder.check(PLAN, resume=True)
        with pytest.raises(CheckpointError, match="another process"), folder.claimed(PLAN, {}):
            pass
    with pytest.raises(CheckpointError, match=r"'train.content' was 'abc' and is now 'xyz'.*another --out"):
        folder.check({**PLAN, "train": {"content": "xyz"}}, resume=True)
    with pytest.raises(CheckpointError, match="'seeds' was absent"):
        folder.check({**PLAN, "seeds": [0]}, resume=True)
    with pytest.raises(CheckpointError, match="holds a comparison already"):
        folder.check(PLAN, resume=False)


def test_what_is_not_a_comparison_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="is not empty"):
        ComparisonFolder(tmp_path).check(PLAN, resume=True)
    with pytest.raises(CheckpointError, match="is a file"):
        ComparisonFolder(tmp_path / "notes.txt").check(PLAN, resume=True)
    (tmp_path / "plan.json").write_text("{broken")
    with pytest.raises(CheckpointError, match="is broken"):
        ComparisonFolder(tmp_path).check(PLAN, resume=True)


def test_a_cell_that_is_whole_comes_back_and_any_other_counts_as_missing(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    folder.write_cell(ROW, cell())
    assert folder.read_cell(ROW, 50, 0, 2) == cell()
    assert folder.read_cell(ROW, 50, 1, 2) is None
    assert folder.read_cell(ROW, 50, 0, 3) is None
    for broken in ('{"row": "scratch"', "[]", json.dumps(cell(seed=1)), json.dumps({"row": "scratch"})):
        folder.cell_path(ROW, 50, 0).write_text(broken)
        assert folder.read_cell(ROW, 50, 0, 2) is None


def test_the_best_model_stays_and_ties_keep_the_first(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)

    def keep(seed: int, accuracy: float) -> str:
        def save(path: Path) -> None:
            path.mkdir(parents=True)
            (path / "model").write_text(str(seed))

        folder.keep_if_best(ROW, {"seed": seed, "accuracy": accuracy}, save)
        return (folder.models / "scratch" / "model").read_text()

    assert [keep(0, 0.6), keep(1, 0.5), keep(2, 0.6), keep(3, 0.7)] == ["0", "0", "0", "3"]
    assert json.loads((folder.models / "scratch.json").read_text()) == {"seed": 3, "accuracy": 0.7}
    assert sorted(path.name for path in folder.models.iterdir()) == ["scratch", "scratch.json"]


def test_a_kill_between_model_and_note_keeps_the_same_model_the_next_time(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    (folder.models / "scratch.old.partial").mkdir(parents=True)
    (folder.models / "scratch.json").write_text(json.dumps({"accuracy": 0.5}))  # of the model that was moved away
    with folder.claimed(PLAN, {}):
        assert not (folder.models / "scratch.old.partial").exists()
        folder.keep_if_best(ROW, {"accuracy": 0.5}, lambda path: path.mkdir())
    assert (folder.models / "scratch").is_dir()
