"""Fine-tuning minilm on SQuAD in batches of 16: the steps of `transfer qa --how finetune` against transformers' Trainer
with AutoModelForQuestionAnswering.

Questions are drawn from the whole training file, 3 batches in each turn; turns and what is timed are as in
bert_fine_tuning. The Trainer's rows are padded by batch, and, as its own example does by default, to 384 pieces. Both
start from vectors that agree to 1e-4 on questions. `python -m bench.questions` compares whole runs and their F1.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.fine_tuning import step_rates
from bench.measure import Measurement, Setting
from bench.operations import TRAINING, bert
from bench.peers.bert import MODEL, exported
from bench.peers.questions import QuestionTrainer
from bench.peers.trainer import Settings
from bench.questions import PADDINGS, QUESTIONS_AS_THEIRS, trainers
from bench.samples import squad_train
from bench.works.bert_fine_tuning import check
from headstart.tasks.examples import draw
from headstart.tasks.qa import Qa
from headstart.transfer.start import open_start

BATCH = 16
BATCHES, QUICK_BATCHES = 3, 1


def run(setting: Setting) -> Iterator[Measurement]:
    train = squad_train(setting.data)
    task = Qa.learn(train)
    turns = setting.repeats + 1
    examples = draw(task, train, (QUICK_BATCHES if setting.quick else BATCHES) * BATCH * turns, seed=0)
    parts = [examples[turn::turns] for turn in range(turns)]
    start = open_start(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        files = exported(Path(folder))
        check(start.pretrained[0], files, [question.question for question in examples[:BATCH]])
        sides = {name: side(files) for name, side in trainers(task, list(PADDINGS)[::-1]).items()}
        settings = Settings(epochs=1, batch=BATCH, rate=5e-5)
        rates = step_rates(start, task, sides, parts, settings, setting.repeats, QUESTIONS_AS_THEIRS)
        lengths = [len(row["input_ids"]) for row in QuestionTrainer(files, task, "longest").rows(examples)]
    ours = rates.pop("ours")
    config: Any = start.pretrained[0].encoder.config
    for name, rate in rates.items():
        yield Measurement(
            work=f"BERT fine-tuning ({MODEL}, SQuAD, batches of {BATCH})",
            unit="questions/s",
            ours=ours,
            peer=rate,
            peer_name=name,
            goal=None,
            flops_per_unit=TRAINING * bert(config, lengths) * sum(lengths) / len(examples),
        )
