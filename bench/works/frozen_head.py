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
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.examples import draw
from headstart.training.seeding import freshly_initialised
from headstart.transfer.answering import ModelInput
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import FeatureTable
from headstart.transfer.fit import gather_features, untrained
from headstart.transfer.fitting import fit
from headstart.transfer.start import Start, open_start, settings_for
from headstart.transfer.task_model import TaskModel

EXAMPLES, QUICK_EXAMPLES = 4_096, 512
SAMPLED_BATCHES = 8
TOLERANCE = 1e-3


HEADS: dict[str, dict[str, Any]] = {
    "linear head on the mean": {"cell": "none", "pool": "mean"},
    "recurrent head": {},
}


def run(setting: Setting) -> Iterator[Measurement]:
    tune_allocator()  # as `transfer` does, for both sides
    examples = sst_train(setting.data)
    task = Classify.learn(examples)
    train = draw(task, examples, QUICK_EXAMPLES if setting.quick else EXAMPLES, seed=0)
    start = open_start(MODEL)
    with tempfile.TemporaryDirectory() as cache:
        for name, network in list(HEADS.items())[: 1 if setting.quick else None]:
            settings = {"fitting": {"epochs": 1.0, "min_steps": 1}, "network": network}
            config = settings_for(Classify, start, "frozen", settings)
            features = result_of(gather_features(start, task, train, config, Path(cache)))
            yield measured(name, start, config, task, train, features, setting.repeats)


def measured(
    name: str,
    start: Start,
    config: TransferConfig,
    task: Classify,
    train: list[TextExample],
    features: list[FeatureTable],
    repeats: int,
) -> Measurement:
    model = freshly_initialised(0, lambda: untrained(start, config, task, train))
    cached, _ = model.prepare(train, labelled=True, features=features)
    if config.mix.standardise:
        table = features[0]
        model.model.only_reader.standardise(*table.moments([table.rows[example.text] for example in train]))
    some = draw(task, train, SAMPLED_BATCHES * config.fitting.batch, seed=0)
    running, _ = model.prepare(some, labelled=True)
    check(model, running, model.prepare(some, labelled=True, features=features)[0])
    sides = {
        "ours": Side(partial(timed, model, cached)),
        "running": Side(partial(timed, model, running)),
    }
    rates = in_turns(sides, repeats)
    _, width = features[0].shape
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


def timed(model: TaskModel[Any, Any], examples: ModelInput) -> Timed:
    """The steps of a fit: one pass over the examples."""
    *_, last = fit(model.model, model.task, "frozen", examples, None, model.config.fitting, 0)
    return Timed(len(examples), last.number / last.per_second)


def check(model: TaskModel[Any, Any], running: ModelInput, cached: ModelInput) -> None:
    rows = list(range(32))
    model.model.train_only("frozen")
    model.model.eval()
    with torch.no_grad():
        check_close("logits", cached.scores(rows)[0], running.scores(rows)[0], TOLERANCE)
