from __future__ import annotations

from dataclasses import replace

import pytest

from headstart.report.results import Baseline, Forgetting, LayerWeights, Run, TransferResults
from headstart.transfer.card import forgetting_text, mix_text, score_text, task_card

RESULTS = TransferResults(
    task="ner", source="runs/b", kind="bert", how="finetune", labels=1200, classes=["LOC", "PER"], dev=20,
    metric="f1", metric_title="F1", best_seed=1, truncated=2, parameters=7000, forgetting=Forgetting(20.0, 50.0),
    baseline=Baseline("No entity", 0.0),
    runs=[
        Run(seed=seed, metric="f1", scores={"f1": score, "precision": 0.5}, seconds=61.0, steps=90, best_step=30,
            collapsed=seed == 0, mix={"input": LayerWeights([0.2, 0.8], 1.5), "output": LayerWeights([1.0])})
        for seed, score in enumerate([0.5, 0.7])
    ],
)  # fmt: skip


def test_the_card_names_the_metric_the_baseline_and_every_seed() -> None:
    card = task_card(RESULTS)
    assert "**Dev F1 60.0 % (sd 14.1 over 2 seeds), precision 50.0 %**, on 20 examples" in card
    assert "- **Baseline**: No entity, 0.0 %." in card
    assert "1,200 labelled examples; 7,000 trained parameters" in card
    assert "| seed | F1 | precision | best step | time | |\n|---|---|---|---|---|---|\n" in card
    assert "| 0 | 50.0 % | 50.0 % | 30 of 90 | 1 min 1 s | collapsed: one label only |" in card
    assert "| 1 | 70.0 % | 50.0 % | 30 of 90 | 1 min 1 s |  |" in card
    assert "- **Layer weights** (input): words 0.20, layer 1 0.80; gamma 1.50." in card
    assert "(output)" not in card  # one layer is no choice


def test_a_score_of_one_seed_says_that_its_spread_is_not_known() -> None:
    assert "F1 70.0 % (one seed only" in score_text(replace(RESULTS, runs=RESULTS.runs[1:]))


def test_a_mix_without_gamma() -> None:
    assert mix_text(LayerWeights([0.25, 0.75])) == "words 0.25, layer 1 0.75"


@pytest.mark.parametrize(("after", "verdict"), [(20.0, "none"), (25.0, "a little"), (43.2, "much")])
def test_forgetting_comes_with_a_verdict(after: float, verdict: str) -> None:
    text = forgetting_text(Forgetting(20.0, after))
    assert f"from 20.0 to {after:.1f} ({after / 20:.2f} times): it forgot {verdict} of its pretraining" in text


def test_a_task_without_labels_has_a_card_without_them() -> None:
    card = task_card(replace(RESULTS, classes=[]))
    assert "label" not in card.splitlines()[0]
    assert "Labels" not in card
    assert "collapsed: one answer only" in card
