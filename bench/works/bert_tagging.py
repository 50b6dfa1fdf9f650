"""Fine-tuning minilm on CoNLL-2003's entities in batches of 32: the steps of `transfer ner --how finetune` against
transformers' Trainer with AutoModelForTokenClassification.

Sentences, turns and what is timed are as in bert_fine_tuning. Both learn each word's tag at its first piece, with a
linear layer that starts random. Both start from vectors that agree to 1e-4 on sentences of dev. `python -m
bench.tagging` compares whole runs and their entity F1.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.measure import Measurement, Setting
from bench.peers.bert import MODEL
from bench.peers.trainer import TaggerTrainer
from bench.samples import conll_dev, conll_train
from bench.works.bert_fine_tuning import BATCH, measured
from headstart.tasks.tag import Tag


def run(setting: Setting) -> Iterator[Measurement]:
    train = conll_train(setting.data)
    task = Tag.learn(train)
    yield measured(
        setting,
        f"BERT fine-tuning ({MODEL}, CoNLL-2003 entities, batches of {BATCH})",
        task,
        train,
        [list(sentence.words) for sentence in conll_dev(setting.data)[:BATCH]],
        lambda files: TaggerTrainer(files, task),
        goal=1.5,
    )
