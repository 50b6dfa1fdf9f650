"""`compare`: which pretrained encoder is worth it, with this text, these labelled examples and this machine?"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.atomic import write_text
from headstart.comparison.cells import CellEvent, Cells
from headstart.comparison.data import Budget, baseline_of, check_labels
from headstart.comparison.dividing import CELLS, FOLDER, check_seen, help_with_cells, lead_cells, shown
from headstart.comparison.events import Began, Compared, RowPretraining
from headstart.comparison.folder import ComparisonFolder
from headstart.comparison.joint_pretraining import Pretrainings, join_pretrainings
from headstart.comparison.own_encoders import DEFAULT_SECONDS, check_recipe, pretrain_own
from headstart.comparison.preparing import Request, plan_of, prepare_comparison, work_of
from headstart.comparison.rows import check_names
from headstart.comparison.summary import results_of, table_so_far
from headstart.config import Section, Table, cache_home, nearest, settings_table
from headstart.errors import ConfigError, EndedElsewhereError
from headstart.pretraining.base import Workplace
from headstart.pretraining.pretrain import Event, Sources, as_list
from headstart.progress import Notice, result_of
from headstart.report.html import csv_text, write_report
from headstart.report.plots import learning_curve
from headstart.report.results import Comparison
from headstart.report.results_json import comparison_to_json, read_comparison
from headstart.tasks import task_class
from headstart.training.coordination import awaited, helping, leading, polling, until_ended
from headstart.training.machine import available_cores
from headstart.training.presence import present
from headstart.training.ranks import Alone, Ranks
from headstart.training.schedule import as_seconds
from headstart.weights.sources import labelled_file

CompareEvent = Began | RowPretraining | Event | CellEvent | Compared
SETTINGS = ("transfer", "rows", "pretrain")
COMPARED = "compared"


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
    ranks: Ranks | None = None,
) -> Generator[CompareEvent, None, Comparison]:
    """Fit every row to every number of labelled examples with every seed; write the table and a report into `out`.

    Rows start from scratch, from the encoders in `with_`, and, given `text`, from word vectors, an ELMo and a BERT
    pretrained here, within `budget` (20 minutes in all), where `with_` has no run of that kind. `labels` are the
    numbers of labelled examples to train on. `settings` are {"transfer.fitting.epochs": 3} for every row,
    {"rows.bert-finetune.fitting.epochs": 2} for one, and {"pretrain.bert.size": "mini"} for what is pretrained.
    Without `report` only the numbers are written, results.json and results.csv. `ranks` are the processes that divide
    the fits (`headstart.training.ranks.joined`): all of them call this with the same arguments and get the results.

    The work happens as the returned generator is consumed. A comparison that was stopped or killed goes on where it
    was when it is asked for again. The last event is `Compared`, and its results are what the generator returns.

        for event in headstart.compare(train="train.csv", dev="dev.csv", text="reviews.txt", out="runs/compared"):
            print(event)
    """
    ranks = ranks or Alone()

    def asked() -> Request:
        kind = task_class(task)
        check_labels(labels)
        if rows is not None:
            check_names(rows)
        given = settings_table(settings)
        check_settings(given)
        home = Path(cache) if cache is not None else cache_home()
        return Request(
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

    if not ranks.launch.is_first:
        return join_comparison(asked, ranks)
    return lead_comparison(asked(), ranks)


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


def lead_comparison(request: Request, ranks: Ranks) -> Generator[CompareEvent, None, Comparison]:
    with present(ranks) as watch:
        try:
            return (yield from polling(leading(ranks, run_comparison(request, ranks)), watch.poll))
        except GeneratorExit:
            watch.raise_lost()  # torchrun stops all processes when one has died
            raise


def run_comparison(request: Request, ranks: Ranks) -> Generator[CompareEvent, None, Comparison]:
    prepared = prepare_comparison(request)
    folder, plan = ComparisonFolder(request.out), plan_of(prepared)
    folder.check(plan, request.resume)
    for recipe in prepared.recipes:
        check_recipe(recipe, request.text, folder.pretrained / recipe.kind)
    data, rows = prepared.data, prepared.rows
    with folder.claimed(plan, data.gold_note()), shown(folder, ranks):
        yield from map(Notice, data.notices)
        cells, pretrainings = Cells(rows, data, folder, request.cache), Pretrainings(ranks)
        cells.find_done()
        done = table_so_far(cells.done)
        yield Began(rows, data.labels, data.seeds, cells.total(), len(cells.done), done, baseline_of(data))
        for recipe in prepared.recipes:
            out = folder.pretrained / recipe.kind
            yield from pretrain_own(
                recipe,
                request.text,
                out,
                cache=request.cache,
                workers=request.workers,
                pretrainings=pretrainings,
            )
        if len(cells.done) < cells.total():
            yield from lead_cells(cells, work_of(prepared), ranks)
        results = results_of(rows, cells.in_order(), data, request.train, request.dev or request.train)
        write_results(results, request.out)
        if request.report:
            write_pictures(results, request.out)
        ranks.publish(COMPARED, True)
        yield Compared(results, request.out)
        return results


def join_comparison(asked: Callable[[], Request], ranks: Ranks) -> Generator[CompareEvent, None, Comparison]:
    """All that any process but the first does; EndedElsewhereError where the comparison ends before it is done."""
    with present(ranks) as watch:
        out = yield from polling(helping(ranks, help_comparison(asked, ranks)), watch.poll)
        yield from polling(until_ended(ranks), watch.poll)
    if out is None or ranks.published(COMPARED) is None:
        raise EndedElsewhereError("The comparison was stopped.")
    return read_comparison(out / "results.json")


def help_comparison(asked: Callable[[], Request], ranks: Ranks) -> Generator[CompareEvent, None, Path | None]:
    """Everything before the first process has all cells. The folder; None where the first one ends before."""
    mark = yield from awaited(ranks, FOLDER)  # names are downloaded by then
    if mark is None:
        return None
    request = asked()
    folder = ComparisonFolder(request.out)
    check_seen(folder, mark)
    prepared = prepare_comparison(request)
    folder.check(plan_of(prepared), resume=True)
    place = Workplace(request.cache, request.workers or available_cores(), ranks)
    left = yield from join_pretrainings(place, until=CELLS)
    if left is not None:
        cells = Cells(prepared.rows, prepared.data, folder, request.cache)
        yield from help_with_cells(cells, left, work_of(prepared), ranks)
    return request.out


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
