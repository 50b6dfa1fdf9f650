"""`compare`: which pretrained encoder is worth it, with this text, these labelled examples and this machine?"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headstart.atomic import write_text
from headstart.comparison.cells import CellEvent, Cells
from headstart.comparison.data import Budget, Data, baseline_of, check_labels, read_data
from headstart.comparison.events import Began, Compared, RowPretraining
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.own_encoders import DEFAULT_SECONDS, Recipe, check_recipe, pretrain_own, recipes
from headstart.comparison.rows import Row, RowEncoder, check_names, choose_rows, kinds_needed
from headstart.comparison.summary import results_of, table_so_far
from headstart.config import Section, Table, cache_home, nearest, overlay, settings_of, settings_table
from headstart.errors import ConfigError
from headstart.pretraining.objectives import STATIC
from headstart.pretraining.pretrain import Event, Sources, as_list
from headstart.progress import Notice, result_of
from headstart.report.html import csv_text, write_report
from headstart.report.plots import learning_curve
from headstart.report.results import Comparison
from headstart.report.results_json import comparison_to_json
from headstart.tasks import task_class
from headstart.tasks.base import Task
from headstart.tasks.examples import content_of
from headstart.text.documents import content_key, discover
from headstart.training.schedule import as_seconds
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import encoder_fingerprint
from headstart.transfer.start import SCRATCH, STACK, Start, open_start, settings_for, side_by_side_start, sources_in
from headstart.weights.sources import labelled_file

CompareEvent = Began | RowPretraining | Event | CellEvent | Compared
SETTINGS = ("transfer", "rows", "pretrain")


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


def compare(
    task: str = "classify",
    *,
    train: str | Path,
    dev: str | Path | None = None,
    out: str | Path,
    text: Sources = (),
    with_: Sources = (),
    rows: Sequence[str] | None = None,
    labels: Sequence[Budget] = (50, 200, 1000),
    seeds: int | Sequence[int] = 5,
    budget: str | float | None = None,
    examples: Section | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    resume: bool = True,
    report: bool = True,
    cache: str | Path | None = None,
    workers: int | None = None,
) -> Generator[CompareEvent, None, Comparison]:
    """Fit every row to every number of labelled examples with every seed; write the table and a report into `out`.

    Rows start from scratch, from the encoders in `with_`, and, given `text`, from word vectors, an ELMo and a BERT
    pretrained here, within `budget` (20 minutes in all), where `with_` has no run of that kind. `labels` are the
    numbers of labelled examples to train on. `settings` are {"transfer.fitting.epochs": 3} for every row,
    {"rows.bert-finetune.fitting.epochs": 2} for one, and {"pretrain.bert.size": "mini"} for what is pretrained.
    Without `report` only the numbers are written, results.json and results.csv.

    The work happens as the returned generator is consumed. A comparison that was stopped or killed goes on where it
    was when it is asked for again. The last event is `Compared`, and its results are what the generator returns.

        for event in headstart.compare(train="train.csv", dev="dev.csv", text="reviews.txt", out="runs/compared"):
            print(event)
    """
    kind = task_class(task)
    check_labels(labels)
    if rows is not None:
        check_names(rows)
    given = settings_table(settings)
    check_settings(given)
    home = Path(cache) if cache is not None else cache_home()
    request = Request(
        task=kind,
        train=result_of(labelled_file(train, home)),
        dev=None if dev is None else result_of(labelled_file(dev, home)),
        out=Path(out),
        text=as_list(text),
        with_=as_list(with_),
        rows=None if rows is None else list(rows),
        labels=list(labels),
        seeds=seed_list(seeds),
        seconds=DEFAULT_SECONDS if budget is None else seconds_of(budget),
        examples=examples or kind.Input(),
        transfer=given.get("transfer", {}),
        by_row=given.get("rows", {}),
        pretrain=given.get("pretrain", {}),
        resume=resume,
        report=report,
        cache=home,
        workers=workers,
    )
    return run_comparison(request)


def check_settings(given: Table) -> None:
    for name, table in given.items():
        if name not in SETTINGS:
            raise ConfigError(f"'{name}' cannot be set in a comparison.{nearest(name, SETTINGS)}")
        if not isinstance(table, dict):
            raise ConfigError(f"'{name}' is a section with keys; got the value {table!r}.")
    for where, table in {"transfer": given.get("transfer", {}), **given.get("rows", {})}.items():
        if isinstance(table, dict) and "how" in table:
            raise ConfigError(
                f"'{where}.how' cannot be set in a comparison: each row has its own. Choose rows with --rows."
            )


def run_comparison(request: Request) -> Generator[CompareEvent, None, Comparison]:
    prepared = prepare_comparison(request)
    folder, plan = ComparisonFolder(request.out), plan_of(prepared)
    folder.check(plan, request.resume)
    for recipe in prepared.recipes:
        check_recipe(recipe, request.text, folder.pretrained / recipe.kind)
    data, rows = prepared.data, prepared.rows
    with folder.claimed(plan, data.gold_note()):
        yield from map(Notice, data.notices)
        cells = Cells(rows, data, folder, request.cache)
        cells.find_done()
        done = table_so_far(cells.done)
        yield Began(rows, data.labels, data.seeds, cells.total(), len(cells.done), done, baseline_of(data))
        for recipe in prepared.recipes:
            out = folder.pretrained / recipe.kind
            yield from pretrain_own(recipe, request.text, out, cache=request.cache, workers=request.workers)
        if len(cells.done) < cells.total():
            starts = starts_of(prepared)
            yield from cells.run(starts, {row.name: settings_of_row(row, starts[row.name], request) for row in rows})
        results = results_of(rows, cells.in_order(), data, request.train, request.dev or request.train)
        write_results(results, request.out)
        if request.report:
            write_pictures(results, request.out)
        yield Compared(results, request.out)
        return results


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


def write_results(results: Comparison, out: Path) -> None:
    write_text(out / "results.json", json.dumps(comparison_to_json(results), indent=1, ensure_ascii=False))
    write_text(out / "results.csv", csv_text(results))


def write_pictures(results: Comparison, out: Path) -> None:
    write_text(out / "learning_curve.svg", learning_curve(results))
    write_report(results, out / "report.html")


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    found = list(range(seeds)) if isinstance(seeds, int) else sorted(set(seeds))
    if not found or found[0] < 0:
        raise ConfigError(f"--seeds takes how many seeds to run, 1 or more; got {seeds}.")
    return found


def seconds_of(budget: str | float) -> float:
    try:
        seconds = as_seconds(budget)
    except ValueError as error:
        raise ConfigError(f"{error}; got '{budget}'.") from error
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise ConfigError(f"--budget takes a time above zero, such as 90s, 10m or 1h30m; got '{budget}'.")
    return float(seconds)
