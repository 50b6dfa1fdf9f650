"""minilm on SNLI's pairs: the steps of `transfer pair --how finetune` against transformers' Trainer, and prediction
against transformers.

Pairs of training, turns and what is timed are as in bert_fine_tuning. Both sides have one linear layer on BERT's pooled
vector of both texts in one sequence. `python -m bench.pairs` compares whole runs and their accuracies.

Prediction, from raw text to labels, is of a model that both sides have in their own form; its head is random, which
takes as long as a trained one. transformers predicts batches of 32 in the order of the file, and again of pairs sorted
by length, each padded to its longest. The probabilities agree to 1e-4.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.measure import Measurement, Setting, Side, check_close, in_turns
from bench.operations import bert
from bench.pairs import PAIRS_AS_THEIRS
from bench.peers.bert import MODEL
from bench.peers.trainer import PairTrainer
from bench.samples import snli_dev, snli_train
from bench.works.bert_fine_tuning import BATCH, TOLERANCE, measured
from headstart.pretrained import Pretrained
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample
from headstart.training.seeding import freshly_initialised
from headstart.transfer.fit import untrained
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_model import TaskModel
from headstart.weights.huggingface import write_huggingface

PAIRS, QUICK_PAIRS = 960, 192


def run(setting: Setting) -> Iterator[Measurement]:
    train = snli_train(setting.data)
    task = Pair.learn(train)
    yield measured(
        setting,
        f"BERT fine-tuning ({MODEL}, SNLI, batches of {BATCH})",
        task,
        train,
        [pair.first for pair in train[:BATCH]],
        lambda files: PairTrainer(files, task),
        goal=None,
        given=PAIRS_AS_THEIRS,
    )
    yield from prediction(setting, task)


def prediction(setting: Setting, task: Pair) -> Iterator[Measurement]:
    pairs = snli_dev(setting.data)[: QUICK_PAIRS if setting.quick else PAIRS]
    model = random_model(task)
    with tempfile.TemporaryDirectory() as folder:
        theirs = TransformersPairs.of(model, Path(folder) / "hf")
    lengths = theirs.lengths(pairs)
    by_length = [pairs[i] for i in np.argsort(lengths, kind="stable")]
    check_close("probabilities", our_probabilities(model, pairs), theirs.probabilities(pairs), TOLERANCE)
    sides = {
        "ours": Side(lambda: len(our_probabilities(model, pairs))),
        "transformers, in the order of the file": Side(lambda: len(theirs.probabilities(pairs))),
        "transformers, sorted by length": Side(lambda: len(theirs.probabilities(by_length))),
    }
    rates = in_turns(sides, setting.repeats)
    ours = rates.pop("ours")
    config: Any = model.encoder.config
    # Only the first piece's top layer is asked for.
    flops = bert(config, lengths, [1] * len(lengths)) * sum(lengths) / len(lengths)
    for name, rate in rates.items():
        yield Measurement(
            work=f"BERT's labels of pairs ({MODEL}, SNLI)",
            unit="pairs/s",
            ours=ours,
            peer=rate,
            peer_name=name,
            goal=None,
            flops_per_unit=flops,
        )


def random_model(task: Pair) -> TaskModel[Any, Any]:
    """A fine-tuned model before its first step."""
    start = open_start(MODEL)
    config = settings_for(Pair, start, "finetune", PAIRS_AS_THEIRS)
    return freshly_initialised(0, partial(untrained, start, config, task, [])).frozen()


def our_probabilities(model: TaskModel[Any, Any], pairs: Sequence[PairExample]) -> NDArray[np.float32]:
    return np.stack([answer.probabilities for answer in model.answers(pairs).answers])


class TransformersPairs:
    """A model of ours, opened by transformers."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        self.tokenizer, self.model = tokenizer, model

    @staticmethod
    def of(model: TaskModel[Any, Any], folder: Path) -> TransformersPairs:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        head, labels = model.model.head.get_submodule("output"), tuple(model.task.class_names)
        write_huggingface(Pretrained(model.encoder, model.tokenizer, {"classify": head}, labels), folder)
        opened = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        return TransformersPairs(AutoTokenizer.from_pretrained(folder), opened)

    def encoded(self, pairs: Sequence[PairExample], **more: Any) -> Any:
        return self.tokenizer([pair.first for pair in pairs], [pair.second for pair in pairs], truncation=True, **more)

    def lengths(self, pairs: Sequence[PairExample]) -> list[int]:
        return [len(ids) for ids in self.encoded(pairs)["input_ids"]]

    def probabilities(self, pairs: Sequence[PairExample]) -> NDArray[np.float32]:
        found = []
        with torch.no_grad():
            for start in range(0, len(pairs), BATCH):
                batch = self.encoded(pairs[start : start + BATCH], padding=True, return_tensors="pt")
                found.append(self.model(**batch).logits.softmax(-1).numpy())
        return np.concatenate(found)
