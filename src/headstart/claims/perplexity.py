"""Held-out perplexity with an interval: what a language model loses on each batch of the same text."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.claims.results import Measured
from headstart.comparison.significance import interval, paired, paired_interval
from headstart.config import overlay, resolve, settings_of
from headstart.errors import DataError
from headstart.metrics import Counts, Metric, share
from headstart.pretraining.held_out import FinishedRun
from headstart.pretraining.neural import NeuralLearner, first_units
from headstart.progress import Progress

BATCH_TOKENS = 256
"""Small batches: they are what the bootstrap draws."""
NEXT_SENTENCE = "next"
"""The one loss that is not of words."""


def perplexity_of(counts: Counts) -> NDArray[np.float64]:
    """exp(nats / words)"""
    perplexity: NDArray[np.float64] = np.exp(np.minimum(share(counts[..., :2]), 700.0))
    return perplexity


def right_of(counts: Counts) -> NDArray[np.float64]:
    return share(counts[..., [2, 1]])


COUNTS = ("nats", "words", "right")
PERPLEXITY = Metric("perplexity", "perplexity", COUNTS, perplexity_of)
RIGHT = Metric("accuracy", "words predicted rightly", COUNTS, right_of)
NOTICE = (
    "Each language model was pretrained once. The intervals of perplexities and of words predicted rightly come from a "
    "bootstrap over batches of held-out text, and do not tell how much another pretraining would differ."
)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """counts: of every batch of the held-out text, (1, batches, 3), so that two models are compared batch by batch."""

    counts: Counts = field(repr=False)

    @property
    def perplexity(self) -> Measured:
        return Measured(PERPLEXITY.of(self.counts[0]), interval(self.counts, PERPLEXITY))

    @property
    def right(self) -> Measured:
        return Measured(RIGHT.of(self.counts[0]), interval(self.counts, RIGHT), "%")

    def more_than(self, other: HeldOut) -> tuple[Measured, float]:
        """How much higher this perplexity is than another's on the same batches, and its p."""
        difference, p = paired(other.counts, self.counts, PERPLEXITY)
        return Measured(difference, paired_interval(other.counts, self.counts, PERPLEXITY)), p


def open_measure(
    run: FinishedRun, text: Path, cache: Path, **objective: Any
) -> Generator[Progress, None, NeuralLearner[Any]]:
    """What measures weights of this run's shapes on a text. objective: settings to measure with, whatever the run's."""
    changed = {"training": {"batch": BATCH_TOKENS}, "objective": objective}
    config = resolve(run.pretraining.config, overlay(settings_of(run.config), changed))
    learner = yield from replace(run, config=config).learner([str(text)], cache)
    if not isinstance(learner, NeuralLearner) or learner.valid is None:
        raise DataError(f"{text}: too little text to measure {run.path} on. Give more.")
    return learner


def held_out_loss(learner: NeuralLearner[Any], weights: Mapping[str, torch.Tensor]) -> HeldOut:
    """Of all directions together, where a language model has two."""
    if learner.valid is None:
        raise ValueError("this learner has no text to be measured on")
    learner.load_weights(weights)
    learner.model.eval()
    found = []
    with torch.no_grad():
        for batch in first_units(learner.valid, None):
            terms = [term for name, term in learner.model(batch, None).items() if name != NEXT_SENTENCE]
            found.append(
                (
                    sum(float(term.total) for term in terms),
                    sum(term.count for term in terms),
                    sum(term.correct or 0 for term in terms),
                )
            )
    return HeldOut(np.array(found, dtype=np.float64)[None])


def measure_run(path: Path, text: Path, cache: Path, **objective: Any) -> Generator[Progress, None, HeldOut]:
    """A finished run with its own weights."""
    run = FinishedRun.open(path)
    learner = yield from open_measure(run, text, cache, **objective)
    return held_out_loss(learner, run.weights)
