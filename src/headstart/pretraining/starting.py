"""Going on from an encoder that exists: its weights, its tokenizer and its settings, on other text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from headstart.config import Table, overlay, read_toml, settings_of
from headstart.errors import ConfigError
from headstart.pretrained import Pretrained, weights_of
from headstart.pretraining.learner import Learner
from headstart.pretraining.objectives import AnyPretraining
from headstart.progress import result_of
from headstart.weights.sources import local, open_source

CARRIED = ("encoder", "objective", "optimizer", "tokenizer")
"""Sections of a run's settings that hold for other text too."""
CARRIED_TRAINING = ("batch", "accumulate", "warmup", "decay", "precision")
EPOCHS = 1.0
"""By default, passes over the other text."""
RATE_SHARE = 0.3
"""Of the peak learning rate of its run, which had sunk to nearly zero at its end: the peak would undo too much."""
FREE = ("dropout", "attention_dropout")
"""Settings of an encoder that its weights do not depend on."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """A pretrained encoder to go on from. settings: those of its run, as far as they hold for other text."""

    source: str
    pretrained: Pretrained
    settings: Table


def open_beginning(source: str, pretraining: AnyPretraining, cache: Path) -> Beginning:
    """pretraining: the objective that is to go on."""
    pretrained = result_of(open_source(source, cache=cache))
    if not pretrained.encoder.contextual:
        raise ConfigError(f"{source}: holds word vectors, which --from cannot go on with; --vectors starts from them.")
    if pretrained.kind != pretraining.name:
        raise ConfigError(f"{source}: holds {pretrained.kind}, so --from cannot go on with it as {pretraining.name}.")
    settings: Table = overlay(
        pretraining.defaults_from(pretrained.heads), {"encoder": settings_of(pretrained.encoder.config)}
    )
    run = result_of(local(source, cache))[0] / "config.toml"
    training: Table = {}
    if run.is_file():
        table = read_toml(run)
        settings = overlay(settings, {section: table[section] for section in CARRIED if section in table})
        training = {key: value for key, value in table.get("training", {}).items() if key in CARRIED_TRAINING}
        if "learning_rate" in table.get("optimizer", {}):
            settings = overlay(
                settings, {"optimizer": {"learning_rate": RATE_SHARE * table["optimizer"]["learning_rate"]}}
            )
    return Beginning(source, pretrained, overlay(settings, {"training": {"epochs": EPOCHS, **training}}))


def settings_that_fit(beginning: Beginning, given: Table, size: str | None) -> Table:
    """Its settings, unless the user gave some that its weights or its tokenizer do not allow to change."""
    if size is not None:
        raise ConfigError(f"--size cannot be given with --from: the size is that of {beginning.source}.")
    if given.get("vectors") is not None:
        raise ConfigError("--from and --vectors exclude each other: both say what the weights are before training.")
    if given.get("tokenizer"):
        raise ConfigError(
            f"tokenizer.{next(iter(given['tokenizer']))} cannot be set with --from: the tokenizer is that of "
            f"{beginning.source}."
        )
    own = settings_of(beginning.pretrained.encoder.config)
    for key, value in given.get("encoder", {}).items():
        if key in own and key not in FREE and own[key] != value:
            raise ConfigError(
                f"encoder.{key} cannot be changed with --from: {beginning.source} has {own[key]!r}, got {value!r}."
            )
    return beginning.settings


def begin(learner: Learner, beginning: Beginning, may_lack: Collection[str]) -> None:
    """Give the learner the weights of the beginning, all of them. may_lack: heads that these settings do not train."""
    own, there = learner.weights(), weights_of(beginning.pretrained)
    for name in sorted(own.keys() | there.keys()):
        part = name.partition(".")[0]
        if name in own and name not in there and part not in may_lack:
            raise ConfigError(f"{beginning.source}: has no '{name}', which --from needs to go on with its training.")
        if name not in own and part in parts_of(own):
            raise ConfigError(f"{beginning.source}: has '{name}', which a model with these settings has not.")
        if name in own and name in there and own[name].shape != there[name].shape:
            raise ConfigError(
                f"{beginning.source}: '{name}' has shape {tuple(there[name].shape)}, but these settings want "
                f"{tuple(own[name].shape)}."
            )
    learner.load_weights({name: there.get(name, tensor) for name, tensor in own.items()})


def parts_of(weights: Mapping[str, Tensor]) -> set[str]:
    """The encoder and the heads that tensors belong to."""
    return {name.partition(".")[0] for name in weights}
