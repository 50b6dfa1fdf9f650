from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from headstart.comparison.findings import findings
from headstart.metrics import ACCURACY
from headstart.report.results import (
    Baseline,
    Cell,
    Comparison,
    DataFacts,
    Forgetting,
    LayerWeights,
    Mixes,
    RowFacts,
    Run,
    ShownAnswer,
    ShownExample,
    TransferResults,
)
from headstart.tasks.shown import Segment, ShownText

ROWS = [("scratch", "Scratch"), ("elmo-frozen", "ELMo, frozen"), ("bert-finetune", "BERT, fine-tuned")]
SHARES = {"scratch": (0.55, 0.7), "elmo-frozen": (0.65, 0.8), "bert-finetune": (0.6, 0.85)}
MIXES: dict[str, Mixes] = {
    "scratch": {},
    "elmo-frozen": {"input": LayerWeights([0.2, 0.5, 0.3], 1.1)},
    "bert-finetune": {"input": LayerWeights([0.25, 0.75], 0.9), "output": LayerWeights([0.4, 0.6], 1.0)},
}


EXAMPLES = [
    ShownExample(
        group,
        [ShownText("text", [Segment("…so "), Segment("<i>good</i> & \"fun\" 🎬", marked=True), Segment(".")])],
        "1",
        [ShownAnswer(name, [Segment(f"label {right}")], right, f"probability {place} %")
         for place, (name, right) in enumerate(zip(dict(ROWS), (0.0, 0.625, 1.0), strict=True))],
    )
    for group in ("BERT does better: 12 of 200", "BERT does better: 12 of 200", "Every row is right: 90 of 200")
]  # fmt: skip


def make_row(name: str, title: str) -> RowFacts:
    if name == "scratch":
        return RowFacts(name, title, None, "scratch", "finetune")
    kind, how = name.split("-")
    return RowFacts(name, title, f"runs/{name}", kind, how, 600.0, {"perplexity": 219.5})


def make_results(labels: tuple[int, ...], seeds: tuple[int, ...]) -> Comparison:
    """A finished comparison of three rows, 200 dev examples."""
    rng = np.random.default_rng(0)
    rows, cells = [make_row(*row) for row in ROWS], []
    for place, count in enumerate(labels):
        for seed in seeds:
            for name, _ in ROWS:
                right = rng.random(200) < SHARES[name][place]
                score = float(right.mean())
                cells.append(
                    Cell(row=name, labels=count, seed=seed, metric="accuracy", seconds=4.2, steps=300, best_step=200,
                         scores={"accuracy": score, "macro_f1": score - 0.01}, parameters=1000, collapsed=False,
                         truncated=0, mix=MIXES[name], counts=np.stack([right, np.ones(200)], -1).astype(np.float64),
                         forgetting=Forgetting(219.5, 260.1) if name == "bert-finetune" else None)
                )  # fmt: skip
    always = np.stack([np.arange(200) < 104, np.ones(200)], -1).astype(np.float64)
    baseline = Baseline("Always '1'", 0.52, always)
    found = findings(rows, cells, labels, seeds, ACCURACY, baseline, rounds=200)
    return Comparison(
        task="classify", task_title="text classification", headstart="0.1.0",
        train=DataFacts("train.csv", 2000, {"0": 900, "1": 1100}),
        dev=DataFacts("dev.csv", 200, {"0": 96, "1": 104}), labels=list(labels), seeds=list(seeds),
        metric="accuracy", metric_title="accuracy", rows=rows, cells=[cell.without_answers() for cell in cells],
        table=found.table, labels_saved=found.labels_saved, advice=found.advice, baseline=baseline,
        notices=["12 dev examples also stand in train."], examples=EXAMPLES,
    )  # fmt: skip


@pytest.fixture(scope="session")
def finished() -> Comparison:
    return make_results((50, 1000), (0, 1, 2))


@pytest.fixture
def make() -> Callable[..., Comparison]:
    return make_results


@pytest.fixture
def transferred() -> TransferResults:
    """Two seeds, of which the second is the better one."""
    runs = [
        Run(seed=seed, metric="f1", scores={"f1": score, "precision": 0.5}, seconds=1.0, steps=9, best_step=seed,
            collapsed=False, mix={"input": LayerWeights([0.1 * seed, 1 - 0.1 * seed])})
        for seed, score in enumerate((0.5, 0.7))
    ]  # fmt: skip
    return TransferResults(
        task="ner", source="runs/b", kind="bert", how="finetune", labels=100, classes=["LOC", "PER"], dev=20,
        metric="f1", metric_title="F1", runs=runs, best_seed=1, truncated=2, parameters=7,
        forgetting=Forgetting(20.0, 30.0), baseline=Baseline("No entity", 0.0), notices=["One."],
    )  # fmt: skip
