from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headstart.comparison.folder import ComparisonFolder
from headstart.errors import CheckpointError
from headstart.report.results import Cell
from headstart.report.results_json import cell_from_json, cell_to_json

PLAN = {"labels": [50], "train": {"content": "abc"}}
GOLD = {"names": ["neg", "pos"], "gold": [0, 0]}
OLD = {
    "row": "scratch", "labels": 50, "seed": 0, "accuracy": 0.5, "macro_f1": 0.4, "seconds": 1.0, "steps": 4,
    "best_step": 4, "parameters": 9, "collapsed": False, "truncated": 0, "mix": {}, "forgetting": None,
    "predicted": [0, 1], "probabilities": [[0.6, 0.4], [0.2, 0.8]],
}  # fmt: skip
"""As the version before wrote it."""


def cell(seed: int = 0, accuracy: float = 0.5, *, collapsed: bool = False) -> Cell:
    return cell_from_json({**OLD, "seed": seed, "accuracy": accuracy, "collapsed": collapsed}, GOLD)


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
    folder.write_cell(cell())
    back = folder.read_cell("scratch", 50, 0, 2)
    assert back == cell()
    assert back is not None
    assert (back.counts.tolist(), back.answers) == (cell().counts.tolist(), cell().answers)
    assert folder.read_cell("scratch", 50, 1, 2) is None
    assert folder.read_cell("scratch", 50, 0, 3) is None
    whole = cell_to_json(cell())
    broken = [
        '{"row": "scratch"',
        "[]",
        "[" * 100_000,
        json.dumps({**whole, "seed": 1}),
        json.dumps({"row": "scratch"}),
    ]
    for missing in ("scores", "counts", "seconds", "mix"):
        broken.append(json.dumps({key: value for key, value in whole.items() if key != missing}))
    for text in broken:
        folder.cell_path("scratch", 50, 0).write_text(text)
        assert folder.read_cell("scratch", 50, 0, 2) is None, text


def test_a_cell_of_the_version_before_is_read_with_its_gold(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    with folder.claimed(PLAN, GOLD):
        folder.cell_path("scratch", 50, 0).write_text(json.dumps(OLD))
    read = folder.read_cell("scratch", 50, 0, 2)
    assert read is not None
    assert (read.metric, read.score, read.scores) == ("accuracy", 0.5, {"accuracy": 0.5, "macro_f1": 0.4})
    assert read.counts.tolist() == [[1, 1], [0, 1]]
    assert read.answers[1] == {"label": "pos", "probabilities": {"neg": 0.2, "pos": 0.8}}


def keep(folder: ComparisonFolder, seed: int, accuracy: float, *, collapsed: bool = False) -> str:
    """Which seed's model is there after this one."""

    def save(path: Path) -> None:
        path.mkdir(parents=True)
        (path / "model").write_text(str(seed))

    folder.keep_if_best(cell(seed, accuracy, collapsed=collapsed), {"seed": seed, "accuracy": accuracy}, save)
    return (folder.models / "scratch" / "model").read_text()


def test_the_best_model_stays_and_ties_keep_the_first(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    assert [keep(folder, seed, score) for seed, score in enumerate([0.6, 0.5, 0.6, 0.7])] == ["0", "0", "0", "3"]
    note = json.loads((folder.models / "scratch.json").read_text())
    assert note == {"seed": 3, "accuracy": 0.7, "collapsed": False}
    assert sorted(path.name for path in folder.models.iterdir()) == ["scratch", "scratch.json"]


def test_of_equal_scores_the_earlier_seed_stays_in_whichever_order_they_come(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    assert [keep(folder, seed, score) for seed, score in ((2, 0.6), (1, 0.6), (2, 0.6), (0, 0.5))] == [
        "2",
        "1",
        "1",
        "1",
    ]


def test_models_of_fits_that_end_at_once_are_kept_one_after_the_other(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: keep(folder, seed, 0.5 + (seed % 7) / 10), range(40)))
    assert json.loads((folder.models / "scratch.json").read_text())["seed"] == 6
    assert (folder.models / "scratch" / "model").read_text() == "6"
    assert sorted(path.name for path in folder.models.iterdir()) == ["scratch", "scratch.json"]


def test_a_collapsed_model_gives_way_to_any_other(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    assert keep(folder, 0, 0.95, collapsed=True) == "0"
    assert keep(folder, 1, 0.6) == "1"
    assert keep(folder, 2, 0.95, collapsed=True) == "1"


def test_a_kill_between_model_and_note_keeps_the_same_model_the_next_time(tmp_path: Path) -> None:
    folder = ComparisonFolder(tmp_path)
    (folder.models / "scratch.old.partial").mkdir(parents=True)
    (folder.models / "scratch.json").write_text(json.dumps({"accuracy": 0.5}))  # of the model that was moved away
    with folder.claimed(PLAN, {}):
        assert not (folder.models / "scratch.old.partial").exists()
        folder.keep_if_best(cell(), {"accuracy": 0.5}, lambda path: path.mkdir())
    assert (folder.models / "scratch").is_dir()
