"""The learning-rate schedule: a pure function of progress, so that a resumed run has the same rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal

from headstart.config import pick

Decay = Literal["linear", "cosine", "constant"]

DECAYS: dict[str, Callable[[float], float]] = {
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1.0 + math.cos(math.pi * done)),
    "constant": lambda done: 1.0,
}


def rate_at(progress: float, warmup: float, decay: str, floor: float = 0.0) -> float:
    """The share of the peak learning rate at `progress`, from 0 to 1: up over `warmup`, then down to `floor`."""
    progress = min(max(progress, 0.0), 1.0)
    if progress < warmup:
        return progress / warmup
    done = (progress - warmup) / (1.0 - warmup) if warmup < 1.0 else 1.0
    return floor + (1.0 - floor) * pick(DECAYS, decay, "decay")(done)


def as_seconds(value: object) -> object:
    """'90s', '10m', '1h', '1h30m' -> seconds; anything but a string is left as it is."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(?:(\d+(?:\.\d+)?)h)?\s*(?:(\d+(?:\.\d+)?)m)?\s*(?:(\d+(?:\.\d+)?)s?)?\s*", value)
    if match is None or not any(match.groups()):
        raise ValueError("--budget takes a time such as 90s, 10m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds
