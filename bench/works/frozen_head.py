"""A head on frozen minilm for SST-2: steps of an epoch from cached features against steps that run the encoder.

Two heads: a linear one on the mean of the words, and (not in the quick one) the recurrent one that `transfer --how
frozen` has by default, whose own products the cache cannot save. The same head and batches on both sides. Ours is timed
over an epoch of 4,096 examples (quick: 512) from features that were computed before, which is not timed; the other side
over a sample of the epoch, eight batches. The logits agree to 1e-3: features differ by the rounding of batches of other
lengths.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.measure import Measurement, Setting, Side, Timed, check_close, in_turns
from bench.operations import TRAINING, lstm
from bench.peers.bert import MODEL
from bench.samples import sst_train
from headstart.cli.allocator import tune_allocator
from headstart.progress import result_of
from headstart.tasks.examples import Examples, draw
from headstart.training.seeding import freshly_initialised
from headstart.transfer.features import FeatureTable
from headstart.transfer.fit import gather_features, labelled, untrained
from headstart.transfer.fitting import Labelled, fit
from headstart.transfer.start import Start, open_start, settings_for
from headstart.transfer.task_model import Classifier, TransferConfig

EXAMPLES, QUICK_EXAMPLES = 4_096, 512
SAMPLED_BATCHES = 8
TOLERANCE = 1e-3


HEADS: dict[str, dict[str, Any]] = {
    "linear head on the mean": {"cell": "none", "pool": "mean"},
    "recurrent head": {},
}


def run(setting: Setting) -> Iterator[Measurement]:
    tune_allocator()  # as `transfer` does, for both sides
    train = draw(sst_train(setting.data), QUICK_EXAMPLES if setting.quick else EXAMPLES, seed=0)
    start = open_start(MODEL)
    with tempfile.TemporaryDirectory() as cache:
        for name, network in list(HEADS.items())[: 1 if setting.quick else None]:
            settings = {"fitting": {"epochs": 1.0, "min_steps": 1}, "network": network}
            config = settings_for(start, "frozen", settings)
            features = result_of(gather_features(start, train.texts, config, Path(cache)))
            yield measured(name, start, config, train, features, setting.repeats)


def measured(
    name: str, start: Start, config: TransferConfig, train: Examples, features: FeatureTable, repeats: int
) -> Measurement:
    classifier = new_classifier(start, config, train, features)
    index = {label: number for number, label in enumerate(classifier.labels)}
    cached, _ = labelled(classifier, train, index, features)
    some = draw(train, SAMPLED_BATCHES * config.fitting.batch, seed=0)
    running, _ = labelled(classifier, some, index, None)
    check(classifier, running, labelled(classifier, some, index, features)[0])
    sides = {
        "ours": Side(partial(timed, classifier, cached, config)),
        "running": Side(partial(timed, classifier, running, config)),
    }
    rates = in_turns(sides, repeats)
    _, width = features.shape
    words = sum(cached.lengths) / len(cached.lengths)
    reading = lstm(width, config.network.width, directions=2) if config.network.cell == "lstm" else None
    return Measurement(
        work=f"Frozen {MODEL}, an epoch of a {name} on SST-2",
        unit="examples/s",
        ours=rates["ours"],
        peer=rates["running"],
        peer_name="the same head, running the encoder for each batch",
        goal=50.0,
        flops_per_unit=None if reading is None else TRAINING * words * reading,
    )


def new_classifier(start: Start, config: TransferConfig, train: Examples, features: FeatureTable) -> Classifier:
    names = sorted(set(train.labels))
    classifier = freshly_initialised(0, lambda: untrained(start, config, train, names))
    if config.mix.standardise:
        classifier.model.standardise(*features.moments([features.rows[text] for text in train.texts]))
    return classifier


def timed(classifier: Classifier, examples: Labelled, config: TransferConfig) -> Timed:
    """The steps of a fit: one pass over the examples."""
    *_, last = fit(classifier.model, "frozen", examples, None, config.fitting, 0)
    return Timed(len(examples.gold), last.number / last.per_second)


def check(classifier: Classifier, running: Labelled, cached: Labelled) -> None:
    rows: list[int] = list(range(32))
    model: Any = classifier.model
    model.train_only("frozen")
    model.eval()
    with torch.no_grad():
        check_close("logits", cached.logits(rows), running.logits(rows), TOLERANCE)
