"""What a comparison begins with: its arguments, the data, the rows and the encoders that exist already."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headstart.comparison.data import Budget, Data, read_data
from headstart.comparison.own_encoders import Recipe, recipes
from headstart.comparison.rows import Row, RowEncoder, choose_rows, kinds_needed
from headstart.config import Section, Table, nearest, overlay, settings_of
from headstart.errors import ConfigError
from headstart.pretraining.objectives import STATIC
from headstart.tasks.base import Task
from headstart.tasks.examples import content_of
from headstart.text.documents import content_key, discover
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import encoder_fingerprint
from headstart.transfer.start import SCRATCH, STACK, Start, open_start, settings_for, side_by_side_start, sources_in


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of `compare`, checked as far as they can be without reading the data."""

    task: type[Task[Any, Any]]
    train: Path
    dev: Path | None
    out: Path
    text: list[str]
    with_: list[str]
    rows: list[str] | None
    labels: list[Budget]
    seeds: list[int]
    seconds: float
    examples: Section
    transfer: Table
    by_row: Table
    pretrain: Table
    resume: bool
    report: bool
    cache: Path
    workers: int | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A comparison that may begin: the data are read, the rows chosen, the encoders that exist opened."""

    request: Request
    data: Data
    rows: list[Row]
    recipes: list[Recipe]
    opened: dict[Path, Start]


def prepare_comparison(request: Request) -> Prepared:
    """Whatever the user can put right is refused here, before anything long begins."""
    if request.text:
        discover(request.text)  # a path that does not exist is refused even where no row needs the text
    data = read_data(request.task, request.train, request.dev, request.examples, request.labels, request.seeds)
    opened = open_sources(request)
    given = [given_encoder(path, start) for path, start in opened.items()]
    made = recipes_for(request, opened, given)
    here = [RowEncoder(recipe.kind, request.out / "pretrained" / recipe.kind, made_here=True) for recipe in made]
    rows = choose_rows([*here, *given], request.rows)
    for name in request.by_row:
        if not any(row.is_called([name]) for row in rows):
            known = {name for row in rows for name in (row.name, row.group)}
            raise ConfigError(f"'rows.{name}' cannot be set: no row is called that.{nearest(name, known)}")
    for row in rows:
        source = row.source
        if source is not None and source.parts and not source.made_here and source.path not in opened:
            opened[source.path] = side_by_side_start([opened[path] for path in source.parts])
        known_settings(row, opened, request)
    for start in opened.values():
        data.notices.extend(start.notices)
    if request.text and not made:
        data.notices.append("--text was not used: the rows need no encoder beyond those given by --with.")
    return Prepared(request, data, rows, made, opened)


def given_encoder(path: Path, start: Start) -> RowEncoder:
    parts = tuple([Path(str(one)) for one in sources_in(str(path))]) if start.kind == STACK else ()
    return RowEncoder(start.kind, path, from_elsewhere=start.run is None, parts=parts)


def open_sources(request: Request) -> dict[Path, Start]:
    """The encoders given by --with, each once, by their path as the user gave it."""
    opened: dict[Path, Start] = {}
    for name in request.with_:
        start, path = open_start(name, request.cache), Path(name)
        if start.pretrained and path.resolve() not in {other.resolve() for other in opened}:
            opened[path] = start
    return opened


def recipes_for(request: Request, opened: Mapping[Path, Start], given: Sequence[RowEncoder]) -> list[Recipe]:
    """How the encoders that the rows need are pretrained, apart from kinds of which --with has a run."""
    kinds: set[str] = set()
    if request.text:
        # Weights of others are compared with what this text gives, so they do not replace it.
        kinds = kinds_needed(request.rows, given) - {start.kind for start in opened.values() if start.run is not None}
    vectors = [path for path, start in opened.items() if start.kind == STATIC and (path / "config.toml").is_file()]
    if STATIC in kinds:
        vectors = [request.out / "pretrained" / STATIC]
    return recipes(kinds, request.seconds, request.pretrain, vectors[0] if vectors else None)


def work_of(prepared: Prepared) -> dict[str, tuple[Start, TransferConfig]]:
    """What each row starts from and its settings, by its name; every encoder exists by now."""
    starts = starts_of(prepared)
    return {
        row.name: (starts[row.name], settings_of_row(row, starts[row.name], prepared.request)) for row in prepared.rows
    }


def settings_of_row(row: Row, start: Start, request: Request) -> TransferConfig:
    """Defaults, overridden by the settings given for all rows, then for its group, then for itself alone."""
    own = sorted((name for name in request.by_row if row.is_called([name])), key=len)
    given = overlay(request.transfer, *(request.by_row[name] for name in own))
    return settings_for(request.task, start, row.how, given)


def known_settings(row: Row, opened: Mapping[Path, Start], request: Request) -> TransferConfig:
    """A row's settings. For an encoder yet to be pretrained they are those of scratch: enough to find a wrong key."""
    start = opened[row.source.path] if row.source is not None and not row.source.made_here else open_start(SCRATCH)
    return settings_of_row(row, start, request)


def starts_of(prepared: Prepared) -> dict[str, Start]:
    """What each row starts from, by its name; every encoder exists by now and is opened once."""
    opened = dict(prepared.opened)
    starts: dict[str, Start] = {}
    for row in prepared.rows:
        if row.source is None:
            starts[row.name] = open_start(SCRATCH)
            continue
        if row.source.path not in opened:
            opened[row.source.path] = open_start([*row.source.parts] or row.source.path)
        starts[row.name] = opened[row.source.path]
    return starts


def plan_of(prepared: Prepared) -> Table:
    """Everything that decides the results, in a form that is unchanged by a round trip through JSON."""
    request, data = prepared.request, prepared.data
    made = {recipe.kind: recipe.as_table() for recipe in prepared.recipes}
    rows: Table = {}
    for row in prepared.rows:
        rows[row.name] = {"kind": row.kind, "how": row.how}
        if row.source is None or not row.source.made_here:
            rows[row.name]["settings"] = settings_of(known_settings(row, prepared.opened, request))
        if row.source is not None and not row.source.made_here:
            found = [encoder_fingerprint(one.encoder) for one in prepared.opened[row.source.path].pretrained]
            rows[row.name]["weights"] = found[0] if len(found) == 1 else found
    plan = {
        "task": request.task.name,
        "headstart": version("headstart"),
        "train": {"examples": len(data.train), "content": content_of(data.task, data.train)},
        "dev": {"examples": len(data.dev), "content": content_of(data.task, data.dev)},
        "labels": data.labels,
        "seeds": data.seeds,
        "rows": rows,
        "transfer": request.transfer,
        "by_row": request.by_row,
        "text": content_key(discover(request.text)) if made else None,
        "pretrain": made,
    }
    normal: Table = json.loads(json.dumps(plan))
    return normal
