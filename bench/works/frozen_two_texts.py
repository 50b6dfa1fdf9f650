"""`evaluate` of a frozen minilm with SNLI's pairs and SQuAD's questions: each distinct text encoded once, against every
premise and every context encoded anew for each pair and each question that it stands in.

Consecutive examples of dev, from raw text to answers, with the head that `transfer --how frozen` has by default, before
its first step. The notes count what the encoder reads on either side. Scores agree to 1e-3: vectors differ by the
rounding of batches of other lengths. `python -m bench.encoder_runs` counts whole files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.encoder_runs import counted, frozen_model
from bench.measure import Measurement, Setting, Side, check_close, in_turns
from bench.peers.bert import MODEL
from bench.samples import snli_dev, snli_train, squad_dev, squad_train
from headstart.batches.rows import AnyText, TextRow
from headstart.cli.allocator import tune_allocator
from headstart.tasks.base import Passage, Task
from headstart.tasks.pair import Pair
from headstart.tasks.qa import Qa
from headstart.transfer.answering import answers_of
from headstart.transfer.start import Start, open_start
from headstart.transfer.task_model import TaskModel

PAIRS, QUICK_PAIRS = 1_200, 120
QUESTIONS, QUICK_QUESTIONS = 300, 30
TOLERANCE = 1e-3


def run(setting: Setting) -> Iterator[Measurement]:
    tune_allocator()  # as `evaluate` does, for both sides
    start = open_start(MODEL)
    pairs = snli_dev(setting.data)[: QUICK_PAIRS if setting.quick else PAIRS]
    yield measured(
        "SNLI", start, Pair.learn(snli_train(setting.data)), pairs, lambda one: one.probabilities, setting.repeats
    )
    questions = squad_dev(setting.data)[: QUICK_QUESTIONS if setting.quick else QUESTIONS]
    yield measured(
        "SQuAD", start, Qa.learn(squad_train(setting.data)), questions, lambda one: [one.score], setting.repeats
    )


def measured(
    corpus: str,
    start: Start,
    task: Task[Any, Any],
    examples: Sequence[Any],
    values: Callable[[Any], Sequence[float]],
    repeats: int,
) -> Measurement:
    """values: what of an answer must be the same on both sides."""
    model = frozen_model(start, task)

    def rows(answers: Sequence[Any]) -> NDArray[np.float64]:
        return np.array([values(answer) for answer in answers], dtype=np.float64)

    with counted(model.encoder) as once:
        ours = model.answers(examples).answers
    with counted(model.encoder) as each_time:
        theirs = anew(model, examples)
    check_close("answers", rows(ours), rows(theirs), TOLERANCE)
    sides = {
        "once": Side(lambda: len(model.answers(examples).answers)),
        "anew": Side(lambda: len(anew(model, examples))),
    }
    rates = in_turns(sides, repeats)
    return Measurement(
        work=f"Frozen {MODEL}, answers to {len(examples):,} {task.many} of {corpus}",
        unit=f"{task.many}/s",
        ours=rates["once"],
        peer=rates["anew"],
        peer_name="the same model, encoding every text anew",
        goal=None,
        note=f"the encoder reads {once.texts:,} texts ({once.tokens:,} tokens) instead of {each_time.texts:,} "
        f"({each_time.tokens:,})",
    )


class Unshared(TaskModel[Any, Any]):
    """Reads every text anew, also one that stands in the batch already."""

    def rows(self, passage: Passage, known: dict[AnyText, list[TextRow]] | None = None) -> list[list[TextRow]]:
        return super().rows(passage)


def anew(model: TaskModel[Any, Any], examples: Sequence[Any]) -> list[Any]:
    unshared = Unshared(model.task, model.tokenizers, model.model, model.config, model.trained)
    data, _ = unshared.prepare(examples)
    return answers_of(model.model, model.task, data)
