from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import headstart
from headstart.claims.perplexity import PERPLEXITY, RIGHT, HeldOut, measure_run
from headstart.pretraining.events import Finished
from headstart.progress import result_of


def loss_of(nats_per_word: list[float], words: int = 10) -> HeldOut:
    return HeldOut(np.array([[(words * nats, words, words / 2) for nats in nats_per_word]]))


def test_perplexity_is_the_exponential_of_nats_per_word() -> None:
    loss = loss_of([math.log(8)] * 20)
    assert loss.perplexity.value == pytest.approx(8)
    assert loss.perplexity.interval == pytest.approx((8, 8))
    assert loss.right.value == 0.5
    assert (PERPLEXITY.name, RIGHT.name) == ("perplexity", "accuracy")


def test_a_model_that_loses_more_on_every_batch_is_worse_beyond_chance() -> None:
    nats = list(np.random.default_rng(0).uniform(2, 4, 30))
    better, worse = loss_of(nats), loss_of([one + 0.05 for one in nats])
    difference, p = worse.more_than(better)
    assert difference.value == pytest.approx(better.perplexity.value * (math.exp(0.05) - 1))
    assert difference.interval is not None
    assert difference.interval[0] > 0
    assert p < 0.01


@pytest.mark.parametrize("kind", ["elmo", "bert"])
def test_a_run_is_measured_as_it_measured_itself(
    kind: str, pretrained_runs: dict[str, Path], corpus: Path, tmp_path: Path
) -> None:
    """The same text, weights and, for BERT, masks; ELMo's own figure is the mean of its two directions."""
    on, held_out = tmp_path / "on", tmp_path / "held_out.txt"
    held_out.write_text("\n\n".join(corpus.read_text(encoding="utf-8").split("\n\n")[:20]), encoding="utf-8")
    settings = {"training.batch": 256, "objective.nsp": False} if kind == "bert" else {"training.batch": 256}
    events = headstart.pretrain(
        kind, corpus, valid=held_out, start=pretrained_runs[kind], out=on, steps=2, settings=settings
    )
    *_, finished = events
    assert isinstance(finished, Finished)
    loss = result_of(measure_run(on, held_out, tmp_path / "cache"))
    assert loss.perplexity.value == pytest.approx(finished.scores["perplexity"], rel=1e-3 if kind == "elmo" else 1e-5)
