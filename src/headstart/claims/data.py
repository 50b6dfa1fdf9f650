"""The data that claims are made on: found in a folder, or fetched, and cut to size into files that every verb reads."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headstart.comparison.demo import write_files
from headstart.config import Table, resolve
from headstart.errors import DataError
from headstart.progress import Progress
from headstart.tasks import task_class
from headstart.tasks.base import Task
from headstart.text.building import OUT_ADVICE, building, cache_key
from headstart.text.documents import TextConfig, file_digest, read_blocks
from headstart.weights.fetching import fetch

Role = Literal["sentiment", "pos", "ner", "text"]
HELD_OUT = 50
"""Of downloaded text, one document in so many is held out."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Two files of a data folder that serve a role. input: the settings of the task's reader."""

    train: str
    dev: str
    input: Table = field(default_factory=dict)

    def under(self, folder: Path) -> Found | None:
        train, dev = folder / self.train, folder / self.dev
        return Found(train, dev, self.input) if train.is_file() and dev.is_file() else None


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a role on this machine."""

    train: Path
    dev: Path
    input: Table = field(default_factory=dict)

    def as_key(self) -> list[object]:
        return [file_digest(self.train), file_digest(self.dev), self.input]


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


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is kept of the data: dev examples, words of text, words of held-out text."""

    dev: int
    text_words: int
    valid_words: int


def open_data(folder: Path | None, out: Path, limits: Limits, cache: Path) -> Generator[Progress, None, ClaimData]:
    """What a data folder has for each role, cut to size under `out`; without a folder, what can be downloaded."""
    if folder is None:
        files = yield from fetched(out, cache)
    else:
        files = found_in(folder)
    key = cache_key(files={role: one.as_key() for role, one in files.items()}, limits=repr(limits))[:12]
    target = out / f"data-{key}"
    if not target.is_dir():
        with building(target, OUT_ADVICE) as made:
            for done, (role, found) in enumerate(files.items()):
                yield Progress("cutting the data to size", done, len(files), "files")
                write_role(role, found, limits, made)
    tasks = {
        role: TaskFiles(role, kind.title, kind.task, *parts_of(role, target))
        for role, kind in ROLES.items()
        if kind.task is not None and role in files
    }
    text = TextFiles(*parts_of("text", target)) if "text" in files else None
    return ClaimData(tasks, text, key)


def found_in(folder: Path) -> dict[Role, Found]:
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder. Give --data the folder that has sst/ or conll2003/.")
    served = {role: [layout.under(folder) for layout in kind.layouts] for role, kind in ROLES.items()}
    files = {role: next(filter(None, found)) for role, found in served.items() if any(found)}
    if not files:
        raise DataError(f"{folder}: has nothing that a claim could be tested on. Wanted are {where_to_put([*ROLES])}.")
    return files


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


def write_role(role: Role, found: Found, limits: Limits, folder: Path) -> None:
    train, dev = parts_of(role, folder)
    name = ROLES[role].task
    if name is None:
        write_lines(train, first_words(documents(found.train), limits.text_words))
        write_lines(dev, first_words(documents(found.dev), limits.valid_words))
        return
    task = task_class(name)
    settings = resolve(task.Input, found.input)
    write_lines(train, (json_of(task, example) for example in task.read(found.train, settings)))
    write_lines(dev, (json_of(task, example) for example in spread_out(task.read(found.dev, settings), limits.dev)))


def json_of(task: type[Task[Any, Any]], example: Any) -> str:
    """An example as the task's reader takes it from JSON lines."""
    gold = task.gold(example)
    named = (
        {"words": list(task.words(example)), "tags": gold}
        if task.scores_words
        else {"text": task.key(example), "label": gold}
    )
    return json.dumps(named, ensure_ascii=False)


def spread_out(examples: Sequence[Any], most: int) -> list[Any]:
    """At most so many, evenly from the whole list, which may have one class after the other."""
    places = np.linspace(0, len(examples) - 1, min(most, len(examples))).round()
    return [examples[int(place)] for place in places]


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
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
