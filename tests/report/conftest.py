from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headstart.comparison.significance import summarise

ROWS = [("scratch", "Scratch"), ("elmo-frozen", "ELMo, frozen"), ("bert-finetune", "BERT, fine-tuned")]
SHARES = {"scratch": (0.55, 0.7), "elmo-frozen": (0.65, 0.8), "bert-finetune": (0.6, 0.85)}
MIXES = {
    "scratch": {},
    "elmo-frozen": {"input": {"weights": [0.2, 0.5, 0.3], "gamma": 1.1}},
    "bert-finetune": {
        "input": {"weights": [0.25, 0.75], "gamma": 0.9},
        "output": {"weights": [0.4, 0.6], "gamma": 1.0},
    },
}


def make_results(labels: tuple[int, ...], seeds: tuple[int, ...]) -> dict[str, Any]:
    """A finished comparison of three rows, 200 dev examples."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = [
        {"name": name, "title": title, "source": None if name == "scratch" else f"runs/{name}",
         "kind": name.split("-")[0], "how": name.split("-")[-1],
         "pretraining_seconds": None if name == "scratch" else 600.0,
         "pretraining_scores": {} if name == "scratch" else {"perplexity": 219.5}}
        for name, title in ROWS
    ]  # fmt: skip
    cells, correct = [], {}
    for place, count in enumerate(labels):
        for seed in seeds:
            for name, _ in ROWS:
                right = rng.random(200) < SHARES[name][place]
                correct[name, count, seed] = right
                cells.append(
                    {"row": name, "labels": count, "seed": seed, "accuracy": float(right.mean()),
                     "macro_f1": float(right.mean()) - 0.01, "seconds": 4.2, "steps": 300, "collapsed": False,
                     "truncated": 0, "mix": copy.deepcopy(MIXES[name]),
                     "forgetting": {"before": 219.5, "after": 260.1} if name == "bert-finetune" else None}
                )  # fmt: skip
    summary = summarise(rows, cells, correct, labels, seeds, rounds=200)
    facts = {"examples": 2000, "classes": {"0": 900, "1": 1100}}
    return {
        "task": "sentiment", "headstart": "0.1.0", "train": {"path": "train.csv", **facts},
        "dev": {"path": "dev.csv", **facts, "examples": 200}, "labels": list(labels), "seeds": list(seeds),
        "metric": "accuracy", "rows": rows, "cells": cells, **summary,
        "notices": ["12 dev examples also stand in train."],
    }  # fmt: skip


@pytest.fixture(scope="session")
def finished() -> dict[str, Any]:
    """Not to be changed."""
    return make_results((50, 1000), (0, 1, 2))


@pytest.fixture
def results(finished: dict[str, Any]) -> dict[str, Any]:
    """A test's own copy, to be changed at will."""
    return copy.deepcopy(finished)


@pytest.fixture
def make() -> Callable[..., dict[str, Any]]:
    return make_results
