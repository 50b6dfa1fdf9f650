"""Where a task starts from, and the settings that suit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

SCRATCH, STACK = "scratch", "stack"
"""The kinds of starts that are no encoder's: none, and several side by side."""
WAYS = ("frozen", "finetune", "gradual")


@dataclass(frozen=True, slots=True)
class Start:
    """Where a task starts from: nothing, a pretrained encoder, or several side by side."""

    name: str
    kind: str
    pretrained: tuple[Pretrained, ...] = ()
    runs: tuple[Path, ...] = ()
    """The run directories of those that were pretrained here: they know what text was held out."""

    @property
    def run(self) -> Path | None:
        """That of a single encoder which was pretrained here."""
        return self.runs[0] if len(self.pretrained) == len(self.runs) == 1 else None

    @property
    def made_here(self) -> bool:
        return len(self.runs) == len(self.pretrained)

    @property
    def notices(self) -> list[str]:
        return [notice for one in self.pretrained for notice in one.notices]


def open_start(source: Source | list[Source], cache: Path | None = None) -> Start:
    """`scratch`, any source of pretrained weights, or several joined by +; what is downloaded is kept in `cache`."""
    if source == SCRATCH:
        return Start(SCRATCH, SCRATCH)
    return side_by_side_start([open_one(one, cache) for one in sources_in(source)])


def open_one(source: Source, cache: Path | None) -> Start:
    pretrained = result_of(open_source(source, cache=cache))
    pretrained.encoder.drop_given_vectors()  # a task model that is saved could not give the same answers
    here = not isinstance(source, tuple) and was_pretrained_here(Path(source))
    return Start(pretrained.name, pretrained.kind, (pretrained,), (Path(str(source)),) if here else ())


def side_by_side_start(starts: Sequence[Start]) -> Start:
    if len(starts) == 1:
        return starts[0]
    pretrained = [one for start in starts for one in start.pretrained]
    runs = [run for start in starts for run in start.runs]
    return Start("+".join(start.name for start in starts), STACK, tuple(pretrained), tuple(runs))


def sources_in(source: Source | list[Source]) -> list[Source]:
    """The encoders to put side by side: a list of sources, or their names with + between them."""
    if isinstance(source, list):
        if not source:
            raise ConfigError("There is no encoder in an empty list; name one or more sources.")
        return source
    if isinstance(source, tuple) or "+" not in str(source) or Path(source).exists():
        return [source]
    parts = [part.strip() for part in str(source).split("+")]
    if not all(parts) or SCRATCH in parts:
        raise ConfigError(f"'{source}': wanted encoders with + between them, such as minilm+glove-50d.")
    return list(parts)


def settings_for(
    task: type[Task[Any, Any]], start: Start, how: str, given: Mapping[str, Any] | None = None
) -> TransferConfig:
    """Defaults that suit the task, the start and the way it is carried over, overridden by the given settings."""
    pick(dict.fromkeys(WAYS), how, "way to carry an encoder over")
    if not start.pretrained:
        how = SCRATCH
        defaults: Table = {"mix": {"kind": "last"}, "fitting": {"encoder_rate": 3e-3}}
    elif how == "frozen":
        defaults = {}
    else:
        # Wide encoders take small steps. Those pretrained elsewhere have seen far more text than minutes here allow:
        # they have more to lose, and need fewer steps (1.7e-5 at BERT base's width, 6.8e-5 at half of it).
        width = max(one.encoder.shape[1] for one in start.pretrained)
        rate = min(1e-3, task.rate_factor * (20 if start.made_here else 10) / width**2)
        length = {"epochs": 4.0} if start.made_here else {"epochs": 2.0, "min_steps": 100, "evaluations": 5}
        layer_decay = 0.4 if how == "gradual" else 1.0
        defaults = {"mix": {"kind": "last"}, "fitting": {"encoder_rate": rate, "layer_decay": layer_decay, **length}}
    if start.pretrained and (given or {}).get("how") == SCRATCH:
        raise ConfigError(
            f"how '{SCRATCH}' begins with random vectors, but {start.name} was given to start from. Leave one of them "
            "out."
        )
    joins = len(start.pretrained) == 1 and start.pretrained[0].encoder.joins
    table = overlay(defaults, task.defaults(how, joins), given or {})
    if not start.pretrained or "how" not in table:
        table["how"] = how
    return resolve(config_for(task), table)
