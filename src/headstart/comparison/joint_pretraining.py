"""Pretraining inside a comparison that several processes share: all of them train, one encoder after the other."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from headstart.errors import EndedElsewhereError
from headstart.pretraining.base import Workplace
from headstart.pretraining.joining import join_run
from headstart.pretraining.objectives import OBJECTIVES
from headstart.pretraining.pretrain import Event
from headstart.training.coordination import awaited, scope
from headstart.training.ranks import Ranks


@dataclass(slots=True)
class Pretrainings:
    """For the first process: the pretrainings that the others have joined so far."""

    ranks: Ranks
    joined: int = field(default=0, init=False)

    @contextmanager
    def begun(self, kind: str) -> Iterator[Ranks | None]:
        """The processes of one more pretraining; None for word vectors, which the first process trains alone."""
        if kind not in OBJECTIVES or not OBJECTIVES[kind].divides:
            yield None
            return
        number, self.joined = self.joined, self.joined + 1
        self.ranks.publish(key_of(number), True)
        with scope(self.ranks, key_of(number)) as ranks:
            yield ranks


def join_pretrainings(place: Workplace, until: str) -> Generator[Event, None, Any]:
    """For the others: train with the first process until it publishes `until`. The value; None if it ends before."""
    ranks = place.ranks
    for number in count():
        told = yield from awaited(ranks, key_of(number), until)
        if told is not True:
            return told
        # A pretraining whose time was too short is begun again; `awaited` sees whether the first process has ended.
        with suppress(EndedElsewhereError):
            yield from join_run(replace(place, ranks=ranks.scoped(key_of(number))))


def key_of(number: int) -> str:
    return f"pretraining-{number}"
