"""The data that claims are made on: found in a folder, or fetched, and cut to size into files that every verb reads."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headstart.claims.cutting import Limits, cut_role, write_lines
from headstart.claims.layouts import ROLES, TOGETHER, Found, Role, found_in
from headstart.comparison.demo import write_files
from headstart.progress import Progress
from headstart.text.building import cache_key
from headstart.weights.fetching import fetch

FETCHED: tuple[Role, ...] = ("sentiment", "text")
"""What can be had without a folder of data."""
HELD_OUT = 50
"""Of downloaded text, one document in so many is held out."""


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
    """What was found of the roles that were asked for. key: of the contents that the roles in TOGETHER have."""

    tasks: dict[Role, TaskFiles]
    text: TextFiles | None
    key: str
    own_keys: dict[Role, str] = field(default_factory=dict)
    """Of the other roles."""

    def has(self, role: Role) -> bool:
        return self.text is not None if role == "text" else role in self.tasks

    def key_of(self, role: Role) -> str:
        """Of everything that decides what the role's files contain."""
        return self.own_keys.get(role, self.key)


def open_data(
    folder: Path | None, out: Path, limits: Limits, cache: Path, roles: Collection[Role] = TOGETHER
) -> Generator[Progress, None, ClaimData]:
    """What a data folder has for these roles, cut to size under `out`; without a folder, what can be downloaded."""
    if folder is None:
        files = yield from fetched(out, cache)
    else:
        files = found_in(folder)
    asked = {role: found for role, found in files.items() if role in roles}
    shared, own = shared_key(files, limits), own_keys(asked, limits)
    places = {role: parts_of(role, out / f"data-{own.get(role, shared)}") for role in asked}
    missing = [role for role, paths in places.items() if not all(path.is_file() for path in paths)]
    for done, role in enumerate(missing):
        yield Progress("cutting the data to size", done, len(missing), "files")
        cut_role(role, asked[role], limits, *places[role])
    tasks = {
        role: TaskFiles(role, kind.title, kind.task, *places[role])
        for role, kind in ROLES.items()
        if kind.task is not None and role in places
    }
    text = TextFiles(*places["text"]) if "text" in places else None
    return ClaimData(tasks, text, shared, own)


def shared_key(files: Mapping[Role, Found], limits: Limits) -> str:
    contents = {role: found.as_key() for role, found in files.items() if role in TOGETHER}
    return cache_key(files=contents, limits=repr(limits))[:12]


def own_keys(files: Mapping[Role, Found], limits: Limits) -> dict[Role, str]:
    return {
        role: cache_key(role=role, files=found.as_key(), dev=limits.dev_by_role.get(role, limits.dev))[:12]
        for role, found in files.items()
        if role not in TOGETHER
    }


def fetched(out: Path, cache: Path) -> Generator[Progress, None, dict[Role, Found]]:
    """Film reviews of the catalogue: sentences with their sentiment, and longer ones as text."""
    reviews = yield from fetch("imdb", cache)
    sentences = yield from fetch("rotten-tomatoes", cache)
    files = write_files(reviews / "imdb.csv", sentences / "rotten-tomatoes.csv", out / "fetched")
    train, valid = (files.text.with_name(f"reviews-{part}.txt") for part in ("train", "valid"))
    lines = files.text.read_text(encoding="utf-8").splitlines()
    write_lines(train, (line for number, line in enumerate(lines) if number % HELD_OUT))
    write_lines(valid, lines[::HELD_OUT])
    return {"sentiment": Found(files.train, files.dev), "text": Found(train, valid)}


def parts_of(role: Role, folder: Path) -> tuple[Path, Path]:
    suffix = "txt" if ROLES[role].task is None else "jsonl"
    return folder / f"{role}-train.{suffix}", folder / f"{role}-dev.{suffix}"
