"""The classifier that both servers open, and one-by-one calls of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from bench.measure import SETTLING_SECONDS
from bench.peers.bert import MODEL
from bench.serving.clients import WARMING
from bench.serving.figures import Run
from headstart.pretrained import Pretrained
from headstart.tasks.classify import Classify, TextExample
from headstart.training.seeding import freshly_initialised
from headstart.transfer.fit import untrained
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_model import TaskModel
from headstart.weights.huggingface import write_huggingface

AS_BERT = {"network": {"pool": "first"}}
"""BERT's own head for texts, so that transformers opens it."""


def write_classifier(examples: Sequence[TextExample], folder: Path) -> None:
    """minilm with a new head for the labels of some examples; it takes as long as a trained one."""
    task, start = Classify.learn(list(examples)), open_start(MODEL)
    config = settings_for(Classify, start, "finetune", AS_BERT)
    model: TaskModel[Any, Any] = freshly_initialised(0, partial(untrained, start, config, task, [])).frozen()
    heads = {"classify": model.model.head.get_submodule("output")}
    write_huggingface(Pretrained(model.encoder, model.tokenizer, heads, tuple(task.class_names)), folder)


def one_by_one(model: TaskModel[Any, Any], texts: Sequence[str], seconds: float) -> Run:
    """Calls in this process, each as soon as the last one has returned."""
    time.sleep(SETTLING_SECONDS)
    began = time.perf_counter()
    counts_from, ends = began + WARMING * seconds, began + seconds
    found = []
    for text in cycle(texts):
        started = time.perf_counter()
        if started >= ends:
            break
        model.answers(model.task.of_texts({"text": text}))
        if started >= counts_from:
            found.append(time.perf_counter() - started)
    return Run(found, time.perf_counter() - counts_from)
