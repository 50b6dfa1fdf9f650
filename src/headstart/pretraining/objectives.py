"""OBJECTIVES, the only list of the ways to pretrain, and which of them a run directory is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headstart.config import Table
from headstart.errors import CheckpointError
from headstart.pretraining.base import Pretraining
from headstart.pretraining.bert.pretraining import BertPretraining
from headstart.pretraining.elmo.pretraining import ElmoPretraining
from headstart.pretraining.static.pretraining import STATIC, GlovePretraining, Word2VecPretraining
from headstart.training.run import RunDirectory

AnyPretraining = Pretraining[Any, Any]
"""Entries of one table differ in their settings and tokenizer; each is given only what it made itself."""

OBJECTIVES: dict[str, AnyPretraining] = {
    entry.name: entry
    for entry in (
        Word2VecPretraining("skipgram"),
        Word2VecPretraining("cbow"),
        GlovePretraining(),
        ElmoPretraining(),
        BertPretraining(),
    )
}
DEFAULT_STATIC = "skipgram"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What config.toml says of a run: its objective, its settings, and the text it learned from."""

    pretraining: AnyPretraining
    settings: Table
    data: Table


def recorded(run: RunDirectory) -> RecordedRun:
    settings = run.read_config()
    data = settings.pop("data", None)
    where = run.path / "config.toml"
    if not isinstance(data, dict) or "sources" not in data or "kind" not in settings:
        raise CheckpointError(f"{where}: has no [data] sources; it was not written by a pretraining run.")
    for pretraining in OBJECTIVES.values():
        if pretraining.wrote(settings):
            return RecordedRun(pretraining, settings, data)
    raise CheckpointError(
        f"{where}: kind '{settings['kind']}' is of none of the objectives {', '.join(OBJECTIVES)}; "
        f"it was not written by a pretraining run."
    )


__all__ = ["DEFAULT_STATIC", "OBJECTIVES", "STATIC", "AnyPretraining", "RecordedRun", "recorded"]
