from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headstart.claims.base import Setting
from headstart.claims.data import TaskFiles
from headstart.claims.fits import Fits
from headstart.claims.layouts import ROLES, Role
from headstart.claims.results import Measured
from headstart.claims.scales import SCALES
from headstart.claims.six_tasks import (
    PAPER,
    TASKS,
    SixTasks,
    above_share,
    best_of,
    findings_of,
    layers_read,
    reductions_table,
    rows_of,
)
from headstart.metrics import ACCURACY
from headstart.report.results import Cell, Comparison, DataFacts, LayerWeights, RowFacts

ROWS = {"scratch": "scratch", "static-frozen": "static", "elmo-frozen": "elmo", "published-frozen": "bert"}


def fits(role: Role, right: dict[str, int], weights: list[list[float]] | None = None) -> Fits:
    """Of a hundred dev examples, every row has the first so many right, with two seeds. weights: ELMo's, by seed."""
    cells = []
    for row, count in right.items():
        for seed in (0, 1):
            counts = np.stack([np.arange(100) < count, np.ones(100)], -1).astype(np.float64)
            mix = {"input": LayerWeights(weights[seed])} if weights and row == "elmo-frozen" else {}
            cells.append(
                Cell(
                    seed=seed, metric="accuracy", scores={"accuracy": count / 100}, seconds=1.0, steps=1, best_step=1,
                    collapsed=False, mix=mix, row=row, labels=10, parameters=1, truncated=0, counts=counts,
                )
            )  # fmt: skip
    facts = DataFacts("file", 100)
    comparison = Comparison(
        task="classify", task_title="", headstart="", train=facts, dev=facts, metric="accuracy",
        metric_title="accuracy", rows=[RowFacts(row, row, None, ROWS[row], "frozen") for row in right],
        labels=[10], seeds=[0, 1], cells=cells, table=[], labels_saved=[], advice=None, baseline=None, notices=[],
    )  # fmt: skip
    files = TaskFiles(role, ROLES[role].title, "classify", Path(), Path())
    return Fits(files, comparison, cells, ACCURACY)


def test_the_paper_reports_these_relative_reductions() -> None:
    """Table 1 of Peters et al. 2018 gives them beside the scores."""
    printed = {"questions": 24.9, "inference": 5.8, "roles": 17.2, "chains": 9.8, "ner": 21.0, "sst5": 6.8}
    assert {role: round(100 * scores.error_reduction, 1) for role, scores in PAPER.items()} == printed


@pytest.mark.parametrize("scale", SCALES)
def test_every_task_has_its_sizes(scale: str) -> None:
    sizes = SCALES[scale].six_tasks
    assert set(sizes) == set(TASKS)
    assert sizes["ner"].dev == SCALES[scale].dev  # its dev file is that of the other claims


def test_the_full_scale_leaves_the_number_of_steps_to_the_tasks() -> None:
    for sizes in SCALES["full"].six_tasks.values():
        assert {key for settings in sizes.fitting.values() for key in settings} == {"evaluations"}


def test_a_published_bert_takes_the_place_of_the_other(setting: Setting) -> None:
    assert [row.name for row in rows_of(setting)][3:] == ["bert-frozen", "bert-finetune"]
    encoders = {**setting.encoders, "published": setting.encoders["bert"]}
    assert [row.name for row in rows_of(replace(setting, encoders=encoders))][3:] == [
        "published-frozen",
        "published-finetune",
    ]


def test_the_key_is_of_its_own_sizes_and_data(setting: Setting) -> None:
    claim = SixTasks()
    key = claim.key(setting)
    assert claim.key(replace(setting, scale=replace(setting.scale, steps=99))) == key
    sizes = setting.scale.six_tasks
    more = {**sizes, "sst5": replace(sizes["sst5"], labels=(7,))}
    assert claim.key(replace(setting, scale=replace(setting.scale, six_tasks=more))) != key
    data = replace(setting.data, own_keys={**setting.data.own_keys, "roles": "other"})
    assert claim.key(replace(setting, data=data)) != key


def test_reductions_stand_beside_those_of_the_paper() -> None:
    """60 of 100 are right from scratch; 70 with word vectors, 80 with ELMo and 75 with BERT."""
    done = fits("sst5", {"scratch": 60, "static-frozen": 70, "elmo-frozen": 80, "published-frozen": 75})
    (row,) = reductions_table([done]).rows
    shares = [cell.value for cell in row if isinstance(cell, Measured)]
    assert shares == pytest.approx([0.25, 0.5, 1 / 3, 0.375, 3.3 / 48.6])
    assert row[5] == "51.4, 54.7"
    assert best_of(done) == "elmo-frozen"
    assert best_of(done, "bert") == "published-frozen"


def test_findings_are_the_steps_and_the_share_of_the_paper() -> None:
    done = fits("questions", {"scratch": 20, "static-frozen": 24, "elmo-frozen": 22})
    verdicts = {finding.sentence.split(": ")[1]: finding.verdict for finding in findings_of(done)}
    assert verdicts == {
        "static-frozen above scratch": "holds",
        "elmo-frozen above static-frozen": "undecided",
        "the best row, static-frozen, cuts scratch's error by at least the paper's 24.9 %": "fails",
    }


def test_a_share_less_another_is_in_points() -> None:
    assert str(above_share(Measured(0.3, (0.2, 0.4), "%"), 0.25)) == "+5.0 (-5.0 to +15.0)"


def test_layers_are_compared_between_syntax_and_meaning() -> None:
    right = dict.fromkeys(("scratch", "elmo-frozen"), 50)
    low, high = [[0.5, 0.5, 0.0]] * 2, [[0.0, 0.5, 0.5], [0.0, 0.4, 0.6]]
    done = [fits("ner", right, low), fits("sst5", right, high)]
    (finding,) = layers_read("elmo", done)
    assert finding.sentence.startswith("ELMo: entities read lower layers than the other tasks")
    assert finding.difference is not None
    assert finding.difference.value == pytest.approx(0.525)
    assert layers_read("elmo", done[:1]) == []
