"""About what fits and pretrainings take, from rates measured on two cores: enough to say how long before it starts."""

from __future__ import annotations

import math

from headstart.claims.base import Setting

FIT_BATCH, FIT_STEPS, FIT_EPOCHS = 32, 200, 6.0
"""The defaults of a fit, roughly, over all tasks."""
SECONDS_PER_FIT_STEP = {
    ("scratch", "scratch"): 0.035,
    ("static", "frozen"): 0.035,
    ("elmo", "frozen"): 0.045,
    ("bert", "frozen"): 0.045,
    ("stack", "frozen"): 0.05,
    ("elmo", "finetune"): 0.2,
    ("bert", "finetune"): 0.25,
}
"""By kind and how, with a batch of 32 sentences and the evaluations on the way."""
SECONDS_PER_STEP = {"static": 0.05, "elmo": 0.25, "bert": 0.15}
"""Of a short pretraining in batches of a thousand tokens, with its evaluations; word vectors are quicker."""
SECONDS_TO_START = 5.0


def fit_minutes(setting: Setting, kind: str, how: str) -> float:
    """Of one row: every number of labelled examples with every seed. kind: static, elmo, bert, scratch or stack."""
    fitting = setting.scale.fitting
    batch = fitting.get("batch", FIT_BATCH)
    steps = sum(
        max(fitting.get("min_steps", FIT_STEPS), math.ceil(fitting.get("epochs", FIT_EPOCHS) * labels / batch))
        for labels in setting.scale.labels
    )
    seconds = setting.scale.seeds * steps * SECONDS_PER_FIT_STEP[kind, how] * batch / FIT_BATCH
    return (SECONDS_TO_START + seconds) / 60


def pretraining_minutes(kind: str, steps: int) -> float:
    return (SECONDS_TO_START + steps * SECONDS_PER_STEP[kind]) / 60
