"""Which layers task models read: the learned s_j and gamma of several runs of `transfer`, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headstart.config import Table
from headstart.errors import ConfigError
from headstart.mix import Mix
from headstart.model import Reader
from headstart.report.html_table import html_table
from headstart.report.layer_bars import draw_layer_bars, layer_name
from headstart.training.run import RunDirectory
from headstart.transfer.loading import load_task_model
from headstart.transfer.task_files import is_task_model

WITHOUT_WEIGHTS = {
    "last": "reads the last layer alone",
    "mean": "reads the mean of all layers",
    "concat": "reads the last four layers side by side",
    "attention": "weighs the layers anew for every word",
}
"""By the kind of mix: why it has no weights to show."""


@dataclass(frozen=True, slots=True)
class LayerMix:
    """How one task model reads the layers of one encoder."""

    run: str
    """The name of its folder, or its path where another run has the same name."""
    task: str
    how: str
    encoder: str
    place: str
    """input: what the task network reads; output: what stands beside its output."""
    weights: tuple[float, ...] | None
    """s_0 .. s_L, which sum to 1; None where the model learned none."""
    gamma: float | None
    note: str
    """Why there are no weights; empty where there are."""


@dataclass(frozen=True, slots=True)
class Mixes:
    """The mixes of several task models: one for each encoder and place of each."""

    mixes: tuple[LayerMix, ...]

    @property
    def learned(self) -> tuple[LayerMix, ...]:
        """Those with weights."""
        return tuple(mix for mix in self.mixes if mix.weights is not None)

    def titles(self) -> list[str]:
        """A short name for each mix: its run, and what else is needed to tell it from the others of that run."""
        runs = [mix.run for mix in self.mixes]
        return [
            mix.run if runs.count(mix.run) == 1 else ", ".join([mix.run, mix.encoder, *self._place(mix)])
            for mix in self.mixes
        ]

    def _place(self, mix: LayerMix) -> list[str]:
        places = {other.place for other in self.mixes if (other.run, other.encoder) == (mix.run, mix.encoder)}
        return [mix.place] if len(places) > 1 else []

    def _repr_html_(self) -> str:
        return html_table(*rows_of(self)) + "".join(f"<p>{escape(note)}</p>" for note in self.notes())

    def notes(self) -> list[str]:
        """A sentence for each mix without weights."""
        pairs = zip(self.titles(), self.mixes, strict=True)
        return [f"{title}: {mix.note} ({mix.how})" for title, mix in pairs if mix.note]

    def as_table(self) -> Table:
        return {"mixes": [asdict(mix) for mix in self.mixes]}


def layers_of(runs: Sequence[str | Path]) -> Mixes:
    """The mixes of task models: runs of `transfer`, or BERTs from elsewhere that have a head."""
    if isinstance(runs, str | Path):
        runs = [runs]
    if not runs:
        raise ConfigError("There is no run to show. Name one task model or more, that is folders of transfer.")
    return Mixes(tuple(mix for run, name in zip(runs, names_of(runs), strict=True) for mix in mixes_in(run, name)))


def names_of(runs: Sequence[str | Path]) -> list[str]:
    """The last part of each path, or all of it where another path ends alike."""
    last = [Path(run).resolve().name for run in runs]
    return [name if last.count(name) == 1 else str(run) for run, name in zip(runs, last, strict=True)]


def mixes_in(run: str | Path, name: str) -> list[LayerMix]:
    loaded = load_task_model(run)
    readers = loaded.model.each_reader
    return [
        layer_mix(mix, run=name, task=loaded.task.name, how=loaded.config.how, encoder=encoder, place=place)
        for reader, encoder in zip(readers, encoder_names(run, readers), strict=True)
        for place, mix in reader.placed_mixes()
    ]


def layer_mix(mix: Mix, **whose: Any) -> LayerMix:
    found = mix.learned()
    if found is None:
        return LayerMix(weights=None, gamma=None, note=WITHOUT_WEIGHTS[mix.config.kind], **whose)
    return LayerMix(weights=tuple(found["weights"]), gamma=found["gamma"], note="", **whose)


def encoder_names(run: str | Path, readers: Sequence[Reader]) -> list[str]:
    """As `transfer --from` named them, where the run tells; otherwise the kinds."""
    record = RunDirectory(Path(run)).read_config().get("result", {}) if is_task_model(Path(run)) else {}
    names = str(record.get("source", "")).split("+")
    return names if all(names) and len(names) == len(readers) else [reader.encoder.kind for reader in readers]


def rows_of(mixes: Mixes) -> tuple[list[str], list[list[str]]]:
    """Headers and rows: the weights of each mix that has some, and its gamma."""
    depth = max((len(mix.weights) for mix in mixes.mixes if mix.weights), default=0)
    rows = []
    for title, mix in zip(mixes.titles(), mixes.mixes, strict=True):
        if mix.weights is not None:
            weights = [f"{weight:.2f}" for weight in mix.weights] + [""] * (depth - len(mix.weights))
            rows.append([title, mix.task, mix.encoder, *weights, "" if mix.gamma is None else f"{mix.gamma:.2f}"])
    return ["run", "task", "encoder", *map(layer_name, range(depth)), "gamma"], rows


def draw_mixes(mixes: Mixes) -> Figure:
    """The weights of the mixes that have several layers to weigh. Within `style()`."""
    pairs = zip(mixes.titles(), mixes.mixes, strict=True)
    groups = [(title, mix.weights) for title, mix in pairs if mix.weights is not None and len(mix.weights) > 1]
    if not groups:
        raise ConfigError(f"There are no layer weights to draw. {'; '.join(mixes.notes())}")
    return draw_layer_bars(groups)
