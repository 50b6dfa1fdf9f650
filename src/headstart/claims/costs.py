"""About what fits and pretrainings take, from rates measured on two cores: enough to say how long before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headstart.claims.base import How, Scale

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
START = 5.0
"""Seconds before the first step."""


def fit_minutes(scale: Scale, how: How, encoders: Sequence[tuple[str, tuple[int, int]]]) -> float:
    """Of one row: every number of labelled examples with every seed. encoders: the kind and the shape of each."""
    fitting = scale.fitting[how]
    batch = fitting.get("batch", FIT_BATCH)
    epochs, least = fitting.get("epochs", FIT_EPOCHS), fitting.get("min_steps", FIT_STEPS)
    steps = sum(max(least, math.ceil(epochs * labels / batch)) for labels in scale.labels)
    if how == "finetune":
        of_step = sum(FINE_TUNING_STEP[kind] * relative_size(kind, shape) for kind, shape in encoders)
        return (START + scale.seeds * steps * of_step * batch / FIT_BATCH) / 60
    sentences = scale.dev + scale.seeds * scale.labels[-1]
    encoding = sentences * sum(SENTENCE[kind] * relative_size(kind, shape) for kind, shape in encoders)
    return (START + encoding + scale.seeds * steps * HEAD_STEP * batch / FIT_BATCH) / 60


def relative_size(kind: str, shape: tuple[int, int]) -> float:
    """Of the encoder that was measured; a layer's matrices grow with the square of its width."""
    (K, D), (measured_K, measured_D) = shape, MEASURED_SHAPES[kind]
    return max(1.0, (K - 1) * D**2 / max(1, (measured_K - 1) * measured_D**2))


def pretraining_minutes(kind: str, steps: float) -> float:
    return (START + steps * PRETRAINING_STEP[kind]) / 60
