"""Fine-tuning minilm on SST-2 in batches of 32: the steps of `transfer --how finetune` against transformers' Trainer.

Both go over the same examples, which are drawn from the whole training file: 48 batches in all, 8 in each turn, the
first to warm up. Only the steps are timed: no tokenising, no looks at dev. Ours fills batches as `fit` does, the
Trainer at random, padding each to its longest. Both start from vectors that agree to 1e-4; each has the head that it
puts on by default. `python -m bench.fine_tuning` compares whole runs and their accuracies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.fine_tuning import step_rates
from bench.measure import Measurement, Setting, check_close
from bench.operations import TRAINING, bert
from bench.peers.bert import MODEL, exported, transformers_model, word_places
from bench.peers.trainer import ClassifierTrainer, Settings, TrainerSide
from bench.samples import sst_train, texts_of
from headstart.pretrained import Pretrained
from headstart.tasks.base import Task
from headstart.tasks.classify import Classify
from headstart.tasks.examples import draw
from headstart.transfer.start import open_start

BATCH = 32
BATCHES, QUICK_BATCHES = 8, 3
TOLERANCE = 1e-4


def run(setting: Setting) -> Iterator[Measurement]:
    train = sst_train(setting.data)
    task = Classify.learn(train)
    yield measured(
        setting,
        f"BERT fine-tuning ({MODEL}, SST-2, batches of {BATCH})",
        task,
        train,
        texts_of(train[:BATCH]),
        lambda files: ClassifierTrainer(files, task),
        goal=2.0,
    )


def measured(
    setting: Setting,
    work: str,
    task: Task[Any, Any],
    train: list[Any],
    texts: Sequence[str | Sequence[str]],
    side: Callable[[Path], TrainerSide[Any]],
    goal: float | None,
    given: Mapping[str, Any] | None = None,
) -> Measurement:
    """texts: those whose vectors must agree before the first step. side: the Trainer's, from a model's files.

    given: our settings where the defaults of the task would compute something else than the Trainer does.
    """
    batches = QUICK_BATCHES if setting.quick else BATCHES
    turns = setting.repeats + 1
    examples = draw(task, train, batches * BATCH * turns, seed=0)
    parts = [examples[turn::turns] for turn in range(turns)]
    start = open_start(MODEL)
    pretrained: Any = start.pretrained[0]
    with tempfile.TemporaryDirectory() as folder:
        trainer = side(exported(Path(folder)))
        check(pretrained, trainer.files, texts)
        settings = Settings(epochs=1, batch=BATCH, rate=5e-5)
        rates = step_rates(start, task, {"trainer": trainer}, parts, settings, setting.repeats, given)
        lengths = [len(row["input_ids"]) for row in trainer.rows(examples)]
    return Measurement(
        work=work,
        unit=f"{task.many}/s",
        ours=rates["ours"],
        peer=rates["trainer"],
        peer_name="transformers' Trainer",
        goal=goal,
        flops_per_unit=TRAINING * bert(pretrained.encoder.config, lengths) * sum(lengths) / len(lengths),
    )


def check(pretrained: Pretrained, files: Path, texts: Sequence[str | Sequence[str]]) -> None:
    """The encoders agree at every word's first piece. texts: strings, or the words of each."""
    tokenizer, model = transformers_model(files)
    is_split = not isinstance(texts[0], str)
    batch = tokenizer(list(texts), is_split_into_words=is_split, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state.numpy()
    mine = pretrained.represent(list(texts), layers="top")
    for text, ours, state in zip(texts, mine, states, strict=True):
        check_close("vectors", ours[0], state[word_places(pretrained, text)], TOLERANCE)
