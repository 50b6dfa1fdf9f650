"""The data that claims are made on: found in a folder, or fetched, and cut to size into files that every verb reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headstart.comparison.demo import write_files
from headstart.config import Table, resolve
from headstart.errors import DataError
from headstart.progress import Progress
from headstart.tasks import task_class
from headstart.text.building import OUT_ADVICE, building, cache_key
from headstart.text.documents import TextConfig, discover, file_digest, read_blocks
from headstart.weights.fetching import fetch

Role = Literal["sentiment", "pos", "ner", "text"]
LINE_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Two files of a data folder that serve a role. input: the settings of the task's reader."""

    train: str
    dev: str
    input: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoleKind:
    """What a role is. task: which reads its files; None for unlabelled text. layouts: the first that is there is taken."""

    title: str
    task: str | None
    layouts: tuple[Layout, ...]


CONLL = (("conll2003/eng.train", "conll2003/eng.testa"), ("conll2003/train.txt", "conll2003/valid.txt"))
ROLES: dict[Role, RoleKind] = {
    "sentiment": RoleKind(
        "sentiment",
        "classify",
        (
            Layout("sst/train.txt", "sst/dev.txt", {"labels_as": 2}),
            Layout("sentiment/train.csv", "sentiment/dev.csv"),
        ),
    ),
    "pos": RoleKind("parts of speech", "tag", tuple([Layout(*files, {"column": 1}) for files in CONLL])),
    "ner": RoleKind("entities", "tag", tuple([Layout(*files, {"column": -1}) for files in CONLL])),
    "text": RoleKind(
        "unlabelled text",
        None,
        (
            Layout("lm_imdb_unsup/train.txt.gz", "lm_imdb_unsup/valid.txt.gz"),
            Layout("text/train.txt", "text/valid.txt"),
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """A labelled task as two files of JSON lines, which `compare`, `transfer` and `read_task` take without options."""

    name: Role
    title: str
    task: str
    train: Path
    dev: Path


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Unlabelled text, one document per line."""

    train: Path
    valid: Path


@dataclass(frozen=True, slots=True)
class ClaimData:
    """What was found. key: of the contents."""

    tasks: dict[Role, TaskFiles]
    text: TextFiles | None
    key: str

    def has(self, role: Role) -> bool:
        return self.text is not None if role == "text" else role in self.tasks


def where_to_put(roles: Sequence[Role]) -> str:
    """ "examples of sentiment: put sst/train.txt and sst/dev.txt into the folder given as --data"."""
    found = []
    for role in roles:
        layout = ROLES[role].layouts[0]
        what = ROLES[role].title if ROLES[role].task is None else f"examples of {ROLES[role].title}"
        found.append(f"{what}: put {layout.train} and {layout.dev} into the folder given as --data")
    return ", or ".join(found)
