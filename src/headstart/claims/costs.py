"""About what fits and pretrainings take, from rates measured on two cores: enough to say how long before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headstart.claims.data import TaskFiles
from headstart.claims.layouts import Role
from headstart.claims.scales import FitSizes, How
from headstart.tasks import task_class

FIT_BATCH, FIT_STEPS, FIT_EPOCHS = 32, 200, 6.0
"""The defaults of a fit, roughly, over all tasks."""
HEAD_STEP = 0.025
"""Seconds of a step of a task's network alone, with a batch of 32 sentences and the looks at dev on the way."""
FINE_TUNING_STEP = {"elmo": 0.15, "bert": 0.08}
"""Seconds of a step with the encoder, for the shapes below; in proportion for others."""
MEASURED_SHAPES = {"static": (1, 128), "elmo": (3, 256), "bert": (4, 192)}
PRETRAINING_STEP = {"static": 0.3, "elmo": 0.25, "bert": 0.08}
"""Seconds of a step of the smallest sizes, with its share of the evaluations."""
SENTENCE = {"static": 0.0, "elmo": 0.004, "bert": 0.002}
"""Seconds to encode a sentence once, for the shapes below; in proportion for others."""
START, FIT_START = 5.0, 2.0
"""Seconds before the first step of a pretraining; of a row of fits, besides its steps."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the examples of a task take, as a multiple of what sentences to classify take: a step of the task's network,
    a step with the encoder, and to encode them once."""

    head: float = 1.0
    tuning: float = 1.0
    encoding: float = 1.0


WORK: dict[Role, Work] = {
    "questions": Work(head=5, tuning=5, encoding=2),
    "inference": Work(tuning=0.5, encoding=0.3),
    "roles": Work(head=3, tuning=0.9, encoding=0.3),
    "chains": Work(head=130, tuning=45, encoding=17),
    "sst5": Work(tuning=0.5, encoding=0.3),
}
"""Questions: fits of a thousand on two cores took 17 s from scratch, 33 s with minilm frozen, 249 s with it fine-tuned.
Pairs of SICK took 0.015, 0.022 and 0.28 s a step. The others, and all encoding, are from a handful of steps on one
core, taken as 1.7 times as long as on two, with a quarter more for the looks at dev; a document has a thousand words.
Factors below 1 make up for `relative_size`, by which minilm takes longer than it does."""


def fit_minutes(
    sizes: FitSizes, seeds: int, task: TaskFiles, how: How, encoders: Sequence[tuple[str, tuple[int, int]]]
) -> float:
    """Of one row: every number of labelled examples with every seed. encoders: the kind and the shape of each."""
    work = WORK.get(task.name, Work())
    joins = [kind for kind, _ in encoders] == ["bert"]
    fitting: dict[str, float] = {**task_class(task.task).defaults(how, joins).get("fitting", {}), **sizes.fitting[how]}
    batch = fitting.get("batch", FIT_BATCH)
    epochs, least = fitting.get("epochs", FIT_EPOCHS), fitting.get("min_steps", FIT_STEPS)
    steps = sum(max(least, math.ceil(epochs * labels / batch)) for labels in sizes.labels)
    of_examples = seeds * steps * batch / FIT_BATCH
    if how == "finetune":
        of_step = sum(FINE_TUNING_STEP[kind] * relative_size(kind, shape) for kind, shape in encoders)
        return (FIT_START + of_examples * of_step * work.tuning) / 60
    texts = sizes.dev + seeds * sizes.labels[-1]
    encoding = texts * work.encoding * sum(SENTENCE[kind] * relative_size(kind, shape) for kind, shape in encoders)
    return (FIT_START + encoding + of_examples * HEAD_STEP * work.head) / 60


def relative_size(kind: str, shape: tuple[int, int]) -> float:
    """Of the encoder that was measured; a layer's matrices grow with the square of its width."""
    (K, D), (measured_K, measured_D) = shape, MEASURED_SHAPES[kind]
    return max(1.0, (K - 1) * D**2 / max(1, (measured_K - 1) * measured_D**2))


def pretraining_minutes(kind: str, steps: float) -> float:
    return (START + steps * PRETRAINING_STEP[kind]) / 60
