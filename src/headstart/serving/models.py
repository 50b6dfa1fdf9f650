"""What a server serves: encoders and task models, opened once and shared by all requests."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import Table, nearest
from headstart.encoders.bert import Bert, Block
from headstart.encoders.elmo import Elmo
from headstart.errors import ConfigError
from headstart.inspection.layers import LayerMix, encoder_names, layer_mix
from headstart.inspection.occurrence_search import OccurrenceIndex
from headstart.pretrained import Pretrained
from headstart.progress import Progress
from headstart.transfer.loading import load_task_model
from headstart.transfer.task_files import is_task_model
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import name_of, open_source

ON_TASK = ("classify", "tag", "span")
"""Heads by which a BERT from elsewhere is a task model."""


@dataclass(frozen=True, slots=True)
class ServedEncoder:
    """An encoder. can: what it may be asked for. index: of a text's occurrences in its top layer."""

    name: str
    pretrained: Pretrained
    index: OccurrenceIndex | None = None

    @property
    def can(self) -> list[str]:
        encoder, heads = self.pretrained.encoder, self.pretrained.heads
        found = ["represent"]
        if not encoder.contextual:
            found.append("neighbours")
        if "masked" in heads:
            found.append("fill")
        if isinstance(encoder, Bert) and all(isinstance(block, Block) for block in encoder.blocks):
            found.append("attention")
        if self.index is not None:
            found.append("occurrences")
        if isinstance(encoder, Elmo) and "head" in heads:
            found.append("next")
        if {"fill", "next"} & set(found):
            found.append("score")
        return found

    def facts(self) -> Table:
        encoder = self.pretrained.encoder
        layers, width = encoder.shape
        return {
            "name": self.name,
            "kind": encoder.kind,
            "title": encoder.title,
            "layers": layers,
            "width": width,
            "vocabulary": len(self.pretrained.tokenizer),
            "can": self.can,
        }


@dataclass(frozen=True, slots=True)
class ServedTask:
    """A task model. encoders: their names, where its run tells."""

    name: str
    model: TaskModel[Any, Any]
    encoders: tuple[str, ...] = ()

    @property
    def can(self) -> list[str]:
        return ["predict"]

    def facts(self) -> Table:
        task = self.model.task
        return {
            "name": self.name,
            "kind": "task",
            "title": task.title,
            "task": task.name,
            "asks": list(task.asks),
            "labels": task.class_names,
            "can": self.can,
        }

    def mixes(self) -> Iterator[tuple[str, LayerMix]]:
        """How it reads the layers of each encoder, with the encoder's kind."""
        readers = self.model.model.each_reader
        kinds = [reader.encoder.kind for reader in readers]
        for reader, kind, encoder in zip(readers, kinds, self.encoders or kinds, strict=True):
            for place, mix in reader.placed_mixes():
                whose = {"run": self.name, "task": self.model.task.name, "how": self.model.config.how}
                yield kind, layer_mix(mix, **whose, encoder=encoder, place=place)


Served = ServedEncoder | ServedTask


class Models:
    """By name. A name is the last part of a path, or the name in the catalogue; no two are the same."""

    def __init__(self, served: Sequence[Served]) -> None:
        self._by_name = {one.name: one for one in served}

    def __iter__(self) -> Iterator[Served]:
        return iter(self._by_name.values())

    def encoder(self, name: str, ability: str) -> Pretrained:
        """One that can be asked for this; an UnknownModelError or a ConfigError names those that can."""
        found = self._named(name)
        if not isinstance(found, ServedEncoder) or ability not in found.can:
            raise ConfigError(f"'{name}' cannot do '{ability}'. {self._others(ability)}")
        return found.pretrained

    def index(self, name: str) -> tuple[Pretrained, OccurrenceIndex]:
        """An encoder with the index of the server's text."""
        found = self._named(name)
        if not isinstance(found, ServedEncoder) or found.index is None:
            raise ConfigError(f"'{name}' has no text to search. {self._others('occurrences')}")
        return found.pretrained, found.index

    def task(self, name: str) -> TaskModel[Any, Any]:
        found = self._named(name)
        if not isinstance(found, ServedTask):
            raise ConfigError(f"'{name}' is an encoder without a task: it predicts nothing. {self._others('predict')}")
        return found.model

    def _named(self, name: str) -> Served:
        if name not in self._by_name:
            raise UnknownModelError(f"No model called '{name:.60}' is served here.{nearest(name, self._by_name)}")
        return self._by_name[name]

    def _others(self, ability: str) -> str:
        able = [one.name for one in self if ability in one.can]
        return f"Ask {' or '.join(able)}." if able else "None that is served here can."


class UnknownModelError(ConfigError):
    """A name that the server does not know."""


def open_models(sources: Sequence[str], precision: str = "float32") -> Generator[Progress, None, Models]:
    """sources: encoders as `headstart.load` takes them, runs of `transfer`, BERTs from elsewhere with a head; NAME=SRC
    gives one another name than the last part of its path."""
    if not sources:
        raise ConfigError("Nothing to serve: name one or more encoders or runs of `headstart transfer`.")
    served: list[Served] = []
    for source in sources:
        one = yield from open_model(source, precision)
        if any(other.name == one.name for other in served):
            raise ConfigError(f"Two of the models are called '{one.name}'. Give one another name, as NAME={source}.")
        served.append(one)
    return Models(served)


def open_model(source: str, precision: str) -> Generator[Progress, None, Served]:
    given, is_named, rest = source.partition("=")
    if is_named and given and not Path(source).exists():
        name, source = given, rest
    else:
        name = name_of(source)
    if is_task_model(Path(source)):
        model = load_task_model(source, precision=precision)
        encoders = encoder_names(source, model.model.each_reader)
        return ServedTask(name, model, tuple(name_of(encoder) for encoder in encoders))
    pretrained = yield from open_source(source, precision=precision)
    if any(head in pretrained.heads for head in ON_TASK):
        return ServedTask(name, load_task_model(source, precision=precision))
    return ServedEncoder(name, pretrained)
