"""Where a task starts from, and the settings that suit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import Table, overlay, pick, resolve
from headstart.errors import ConfigError
from headstart.pretrained import Pretrained, was_pretrained_here
from headstart.progress import result_of
from headstart.tasks.base import Task
from headstart.transfer.config import TransferConfig, config_for
from headstart.weights.sources import Source, open_source

SCRATCH = "scratch"
WAYS = ("frozen", "finetune", "gradual")


@dataclass(frozen=True, slots=True)
class Start:
    """Where a task starts from: nothing, or a pretrained encoder."""

    name: str
    kind: str
    pretrained: Pretrained | None
    run: Path | None = None
    """The run directory that it was pretrained in, where there is one: it knows what text was held out."""


def open_start(source: Source, cache: Path | None = None) -> Start:
    """`scratch`, or any source of pretrained weights; what is downloaded is kept in `cache`."""
    if source == SCRATCH:
        return Start(SCRATCH, SCRATCH, None)
    pretrained = result_of(open_source(source, cache=cache))
    pretrained.encoder.drop_given_vectors()  # a task model that is saved could not give the same answers
    run = None if isinstance(source, tuple) else Path(source)
    return Start(pretrained.name, pretrained.kind, pretrained, run if run and was_pretrained_here(run) else None)


def settings_for(
    task: type[Task[Any, Any]], start: Start, how: str, given: Mapping[str, Any] | None = None
) -> TransferConfig:
    """Defaults that suit the task, the start and the way it is carried over, overridden by the given settings."""
    pick(dict.fromkeys(WAYS), how, "way to carry an encoder over")
    if start.pretrained is None:
        how = SCRATCH
        defaults: Table = {"mix": {"kind": "last"}, "fitting": {"encoder_rate": 3e-3}}
    elif how == "frozen":
        defaults = {}
    else:
        # Wide encoders take small steps. Those pretrained elsewhere have seen far more text than minutes here allow:
        # they have more to lose, and need fewer steps (1.7e-5 at BERT base's width, 6.8e-5 at half of it).
        made_here = start.run is not None
        rate = min(1e-3, task.rate_factor * (20 if made_here else 10) / start.pretrained.encoder.shape[1] ** 2)
        length = {"epochs": 4.0} if made_here else {"epochs": 2.0, "min_steps": 100, "evaluations": 5}
        layer_decay = 0.4 if how == "gradual" else 1.0
        defaults = {"mix": {"kind": "last"}, "fitting": {"encoder_rate": rate, "layer_decay": layer_decay, **length}}
    if start.pretrained is not None and (given or {}).get("how") == SCRATCH:
        raise ConfigError(
            f"how '{SCRATCH}' begins with random vectors, but {start.name} was given to start from. Leave one of them "
            "out."
        )
    table = overlay(defaults, task.defaults(how), given or {})
    if start.pretrained is None or "how" not in table:
        table["how"] = how
    return resolve(config_for(task), table)
