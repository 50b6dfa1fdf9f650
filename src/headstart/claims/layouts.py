"""Which files of a data folder serve which role in the claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from headstart.config import Table
from headstart.errors import DataError
from headstart.text.documents import file_digest

Role = Literal["sentiment", "pos", "ner", "text", "questions", "inference", "roles", "chains", "sst5"]
TOGETHER: tuple[Role, ...] = ("sentiment", "pos", "ner", "text")
"""Roles that share one key. Each of the others has its own, so that it is made ready only for claims that use it."""
PACKED = ".gz"


@dataclass(frozen=True, slots=True)
class Layout:
    """Two files, or folders, of a data folder that serve a role. input: the settings of the task's reader."""

    train: str
    dev: str
    input: Table = field(default_factory=dict)

    def under(self, folder: Path) -> Found | None:
        train, dev = (packed_or_not(folder / name) for name in (self.train, self.dev))
        return Found(train, dev, self.input) if train is not None and dev is not None else None


def packed_or_not(path: Path) -> Path | None:
    """The path if it is there; else the same file with .gz, or without."""
    name = path.name
    other = path.with_name(name.removesuffix(PACKED) if name.endswith(PACKED) else f"{name}{PACKED}")
    return next((one for one in (path, other) if one.exists()), None)


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a role on this machine."""

    train: Path
    dev: Path
    input: Table = field(default_factory=dict)

    def as_key(self) -> list[object]:
        return [digest_of(self.train), digest_of(self.dev), self.input]


def digest_of(path: Path) -> object:
    """Of a file, or of every file of a folder."""
    if not path.is_dir():
        return file_digest(path)
    return {file.relative_to(path).as_posix(): file_digest(file) for file in path.rglob("*") if file.is_file()}


@dataclass(frozen=True, slots=True)
class RoleKind:
    """What a role is. task: which reads its files; None for unlabelled text. layouts: the first there is taken."""

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
    "questions": RoleKind(
        "question answering",
        "qa",
        (
            Layout("squad/squad1.1-train.json.gz", "squad/squad1.1-dev.json.gz"),
            Layout("squad/train-v1.1.json", "squad/dev-v1.1.json"),
        ),
    ),
    "inference": RoleKind(
        "natural language inference",
        "pair",
        (
            Layout("snli/snli_1.0_train.jsonl", "snli/snli_1.0_dev.jsonl"),
            Layout("sick/SICK_train.txt", "sick/SICK_trial.txt"),
        ),
    ),
    "roles": RoleKind(
        "semantic roles", "srl", (Layout("srl_ewt/ewt.train.gold_conll.gz", "srl_ewt/ewt.dev.gold_conll.gz"),)
    ),
    "chains": RoleKind(
        "coreference",
        "coref",
        (
            Layout("ontogum_coref/train.conll.gz", "ontogum_coref/dev.conll.gz"),
            Layout("litbank_coref/train", "litbank_coref/dev"),
        ),
    ),
    "sst5": RoleKind(
        "sentiment in five classes", "classify", (Layout("sst/train.txt", "sst/dev.txt", {"labels_as": 5}),)
    ),
}


def where_to_put(roles: Sequence[Role]) -> str:
    """ "examples of sentiment: put sst/train.txt and sst/dev.txt into the folder given as --data"."""
    found = []
    for role in roles:
        layout = ROLES[role].layouts[0]
        what = ROLES[role].title if ROLES[role].task is None else f"examples of {ROLES[role].title}"
        found.append(f"{what}: put {layout.train} and {layout.dev} into the folder given as --data")
    return ", or ".join(found)


def found_in(folder: Path) -> dict[Role, Found]:
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder. Give --data the folder that has sst/ or conll2003/.")
    served = {role: [layout.under(folder) for layout in kind.layouts] for role, kind in ROLES.items()}
    files = {role: next(filter(None, found)) for role, found in served.items() if any(found)}
    if not files:
        raise DataError(f"{folder}: has nothing that a claim could be tested on. Wanted are {where_to_put([*ROLES])}.")
    return files
