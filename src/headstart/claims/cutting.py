"""Data cut to size, as files that every verb reads without options: JSON lines, and text with a document per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headstart.atomic import write_text
from headstart.claims.layouts import ROLES, Found, Role
from headstart.config import resolve
from headstart.tasks import task_class
from headstart.text.building import OUT_ADVICE
from headstart.text.documents import TextConfig, read_blocks


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is kept of the data: dev examples, words of text, words of held-out text."""

    dev: int
    text_words: int
    valid_words: int
    dev_by_role: Mapping[Role, int] = field(default_factory=dict, repr=False)
    """Of roles that have a key of their own; `repr` is in the key of the others."""


def cut_role(role: Role, found: Found, limits: Limits, train: Path, dev: Path) -> None:
    """Write a role's two files. All is read before anything is written."""
    name = ROLES[role].task
    if name is None:
        write_lines(train, first_words(documents(found.train), limits.text_words))
        write_lines(dev, first_words(documents(found.dev), limits.valid_words))
        return
    task = task_class(name)
    settings = resolve(task.Input, found.input)
    most = limits.dev_by_role.get(role, limits.dev)
    for path, examples in (
        (train, task.read(found.train, settings)),
        (dev, spread_out(task.read(found.dev, settings), most)),
    ):
        write_lines(path, (json.dumps(task.line(example), ensure_ascii=False) for example in examples))


def spread_out(examples: Sequence[Any], most: int) -> list[Any]:
    """At most so many, evenly from the whole list, which may have one class after the other."""
    places = np.linspace(0, len(examples) - 1, min(most, len(examples))).round()
    return [examples[int(place)] for place in places]


# --- text -------------------------------------------------------------------------------------------------------------


def documents(path: Path) -> Iterator[str]:
    """The documents of a file, without their line breaks; a very long one in parts."""
    return (" ".join(block.text.split()) for block in read_blocks([path], TextConfig()))


def first_words(texts: Iterable[str], most: int) -> Iterator[str]:
    """Whole documents until there are so many words."""
    words = 0
    for text in texts:
        yield text
        words += text.count(" ") + 1
        if words >= most:
            return


def write_lines(path: Path, lines: Iterable[str]) -> None:
    write_text(path, "".join(f"{line}\n" for line in lines), OUT_ADVICE)
