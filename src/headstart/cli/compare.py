"""`headstart compare`: options to one call, watched as a growing table; the results go to stdout."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import LABELLED, Quiet, Settings, Task, input_settings, reader_options, settings_given

if TYPE_CHECKING:
    from rich.console import Console

    from headstart.comparison.compare import CompareEvent
    from headstart.comparison.events import Compared
    from headstart.report.results import Comparison, LabelsSaved
    from headstart.training.ranks import Ranks

STOPPED = 130
"""What a shell reports for a process ended by Ctrl-C."""
PIPE_WIDTH = 160
NARROWEST_COLUMN = 8

Train = Annotated[Path, typer.Option("--train", metavar="FILE", help="Labelled examples to train on.")]
Dev = Annotated[
    Path | None,
    typer.Option(
        "--dev", metavar="FILE", help="Labelled examples to evaluate on. Default: a tenth of --train, held out."
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the report, the models and every run.")]
PretrainOn = Annotated[
    list[str] | None, typer.Option("--text", metavar="TEXT", help="Unlabelled text to pretrain on; may be repeated.")
]
OnePerLine = Annotated[
    bool | None,
    typer.Option("--one-per-line/--no-one-per-line", help="In --text's .txt files, each line is a document."),
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="SRC", help="An encoder to compare: a run, minilm, other weights. May be repeated."),
]
RowNames = Annotated[
    str | None,
    typer.Option("--rows", metavar="NAMES", help="Which rows, such as scratch,elmo-frozen. Default: the usual five."),
]
Budgets = Annotated[
    str,
    typer.Option("--labels", metavar="COUNTS", help="Numbers of labelled examples to train on, such as 50,200,all."),
]
Seeds = Annotated[int, typer.Option("--seeds", help="Runs per row and number of examples, each on another sample.")]
Time = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time for all pretraining together. Default: 20m.")
]


@reader_options(LABELLED)
def compare(
    task: Task,
    *,
    train: Train,
    out: Out,
    dev: Dev = None,
    text: PretrainOn = None,
    with_: With = None,
    rows: RowNames = None,
    labels: Budgets = "50,200,1000",
    seeds: Seeds = 5,
    budget: Time = None,
    one_per_line: OnePerLine = None,
    settings: Settings = None,
    quiet: Quiet = False,
    reading: dict[str, Any],
) -> None:
    """Compare scratch, word vectors, ELMo and BERT on your labelled examples, and say which to deploy.

    After a stop or a kill, the same command goes on where it was.
    """
    from headstart.cli.weights import fetch_named
    from headstart.comparison.compare import compare as run_comparison
    from headstart.tasks import task_class
    from headstart.training.launch import launch_of
    from headstart.training.ranks import joined

    flags = {"pretrain.text.one_per_line": one_per_line}
    with joined(launch_of(os.environ)) as ranks:
        is_first = ranks.launch.is_first
        if is_first:
            fetch_named([train, dev, *(with_ or ())], quiet)
        events = run_comparison(
            task,
            train=train,
            dev=dev,
            out=out,
            text=text or (),
            with_=with_ or (),
            rows=None if rows is None else split_list(rows),
            labels=[int(part) if part.isdecimal() else part for part in split_list(labels)],  # type: ignore[misc]
            seeds=seeds,
            budget=budget,
            examples=input_settings(task_class(task), reading),
            settings=settings_given(flags, settings),
            ranks=ranks,
        )
        compared = watch_comparison(events, quiet or not is_first, ranks)
    show_compared(compared, quiet, together=ranks.launch.joins)


def watch_comparison(
    events: Generator[CompareEvent, None, Comparison], quiet: bool, ranks: Ranks | None = None
) -> Compared | None:
    """Show each event; the first Ctrl-C stops with everything saved. None if it was stopped, or another one ends it."""
    from headstart.cli.comparison_table import watching
    from headstart.cli.stopping import stop_requests
    from headstart.comparison.events import CellDone, Compared
    from headstart.errors import EndedElsewhereError

    done, compared = "", None
    with stop_requests(ranks) as stop, watching(quiet) as show, suppress(EndedElsewhereError):
        for event in events:
            show(event)
            if isinstance(event, CellDone):
                done = f" {event.done} of {event.total} runs are done."
            if isinstance(event, Compared):
                compared = event
            elif stop.is_due():
                events.close()
                show.stopped(f"Stopped, with everything saved.{done} The same command goes on from here.")
    return compared


def show_compared(compared: Compared | None, quiet: bool, *, together: bool = False) -> None:
    """together: whether torchrun has started this process. It would start those again that end with an error, and a
    stop that was asked for is none."""
    if compared is None:
        raise typer.Exit(0 if together else STOPPED)
    show_results(compared.results, compared.out, quiet)


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def show_results(results: Comparison, out: Path, quiet: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headstart.report.html import table_rows

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    header, rows = table_rows(results)
    table = Table(title=Text(f"{results.task_title}: {results.metric_title} in % on {results.dev.path}"))
    for number, column in enumerate(header):
        # Without a least width, rich squeezes a wide table on a narrow terminal until nothing can be read.
        table.add_column(column, justify="right" if number else "left", min_width=NARROWEST_COLUMN)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print("mean over the seeds (95 % interval); * differs from the row above by more than chance (p < 0.05)")
    if any(entry.collapsed for entry in results.table):
        console.print("collapsed: so many of the runs gave every example the same answer")
    if not quiet:
        show_findings(results, console)
    typer.echo(out / "report.html")


def show_findings(results: Comparison, console: Console) -> None:
    def say(line: str = "") -> None:
        console.print(line, markup=False, soft_wrap=True)

    sections = {
        "Labelled examples saved": saved_lines(results.labels_saved),
        "Layer weights": mix_lines(results),
        "Time": time_lines(results),
        "Notices": results.notices,
    }
    for title, lines in sections.items():
        if lines:
            say(title)
            for line in lines:
                say(f"  {line}")
    if results.advice is not None:
        say()
        say(results.advice.sentence)


def saved_lines(labels_saved: Sequence[LabelsSaved]) -> list[str]:
    """What more examples do is left out once a row does more with fewer than scratch does with the most."""
    above: dict[str, int] = {}
    for saved in labels_saved:
        if saved.equals is None:
            above[saved.row] = min(saved.labels, above.get(saved.row, saved.labels))
    return [saved.sentence for saved in labels_saved if saved.labels <= above.get(saved.row, saved.labels)]


def mix_lines(results: Comparison) -> list[str]:
    """The learned weight of each layer, with the most labelled examples, as a mean over the seeds."""
    from headstart.report.plots import mix_groups
    from headstart.report.results import LayerWeights
    from headstart.transfer.card import mix_text

    return [f"{mix.title}: {mix_text(LayerWeights(mix.weights, mix.gamma))}" for mix in mix_groups(results)]


def time_lines(results: Comparison) -> list[str]:
    from headstart.report.wording import duration

    seconds = {entry.row: entry.seconds for entry in results.with_most_labels()}
    lines = []
    for row in results.rows:
        before = row.pretraining_seconds
        pretrained = "" if before is None else f"pretrained in {duration(before)}, then "
        lines.append(
            f"{row.title}: {pretrained}{seconds[row.name]:.1f} s for a fit to {results.labels[-1]:,} labelled examples"
        )
    return lines
