"""What a long job reports while it works, and the one function that runs such a job for its result alone.

Every long job is a generator: it yields events and returns its result. Events are frozen dataclasses; `as_dict` gives
any of them as plain values, for a log line or a web page.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

ResultT = TypeVar("ResultT")
BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one stage of a job is: `done` of `total` units. A total of 0 means that the end is not known."""

    stage: str
    done: int
    total: int
    unit: str = BYTES


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know, in a sentence."""

    text: str


def result_of(job: Generator[object, None, ResultT]) -> ResultT:
    """Run a job to its end without watching it."""
    while True:
        try:
            next(job)
        except StopIteration as end:
            result: ResultT = end.value
            return result


def as_dict(event: object) -> dict[str, Any]:
    """An event as {"event": its class name, field: value, ...} of values that JSON can hold."""
    if not is_dataclass(event) or isinstance(event, type):
        raise TypeError(f"an event is an instance of a dataclass; got {event!r:.60}")
    return {"event": type(event).__name__, **{field.name: plain(getattr(event, field.name)) for field in fields(event)}}


def plain(value: object) -> Any:
    """Strings, numbers, lists and dictionaries only; anything else is given as its repr."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return repr(value)
