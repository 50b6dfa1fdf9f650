"""Text files -> shards of ids, cached by content."""

from __future__ import annotations

from dataclasses import dataclass

from headstart.text.shards import Shards


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a pass over the text has come, in bytes on disk."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Corpora:
    """The shards to train on and those held out; `reused` if they were in the cache already."""

    train: Shards
    valid: Shards | None
    reused: bool
