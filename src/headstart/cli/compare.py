"""`headstart compare sentiment`: flags to one call, watched as a growing table, and its result on stdout."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.transfer import (
    LabelField,
    LabelsAs,
    Quiet,
    Settings,
    Task,
    TextField,
    examples_config,
    settings_given,
)  # fmt: skip

if TYPE_CHECKING:
    from rich.console import Console

    from headstart.comparison.compare import CompareEvent

PIPE_WIDTH = 160


def compare(
    task: Task,
    *,
    train: Annotated[Path, typer.Option("--train", metavar="FILE", help="Labelled examples to learn from.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the report, the models and all cells.")],
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Examples to be measured on; left out, a tenth of --train."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="TEXT", help="Unlabelled text to pretrain on; may be given often."),
    ] = None,
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="SRC", help="A pretrained run, minilm or other weights; may be given often."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows", metavar="NAMES", help="Rows, such as scratch,elmo-frozen. Default: all but bert-frozen."
        ),
    ] = None,
    labels: Annotated[
        str, typer.Option("--labels", metavar="COUNTS", help="Budgets of labels, such as 50,200,all.")
    ] = "50,200,1000",
    seeds: Annotated[
        int, typer.Option("--seeds", help="How often each cell is fitted, on other labels each time.")
    ] = 5,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Time for all pretraining. Default: 20m.")
    ] = None,
    text_field: TextField = None,
    label_field: LabelField = None,
    labels_as: LabelsAs = None,
    one_per_line: Annotated[
        bool | None,
        typer.Option("--one-per-line/--no-one-per-line", help="In --text's .txt files, each line is a document."),
    ] = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Compare head starts on your labels: scratch, word vectors, ELMo and BERT, and say which to deploy.

    Stopped or killed, the same command goes on where it was.
    """
    from headstart.cli.weights import fetch_named
    from headstart.comparison.compare import compare as run_comparison

    fetch_named([train, dev, *(with_ or ())], quiet)
    flags = {"pretrain.text.one_per_line": one_per_line}
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
        examples=examples_config(text_field, label_field, labels_as),
        settings=settings_given(flags, settings),
    )
    watch_comparison(events, out, quiet)


def watch_comparison(events: Generator[CompareEvent, None, Any], out: Path, quiet: bool) -> None:
    """Show each event, then the results; the first Ctrl-C stops with everything saved."""
    from headstart.cli.comparing import watching
    from headstart.cli.pretrain import stop_requests
    from headstart.comparison.events import CellDone, Compared

    done, results = "", None
    with stop_requests() as stop, watching(quiet) as show:
        for event in events:
            show(event)
            if isinstance(event, CellDone):
                done = f" {event.done} of {event.total} cells are done."
            if isinstance(event, Compared):
                results = event.results
            elif stop.asked:
                events.close()
                show.stopped(f"Stopped, with everything saved.{done} The same command goes on from here.")
                raise typer.Exit(130)
    if results is not None:
        show_results(results, out, quiet)


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def show_results(results: dict[str, Any], out: Path, quiet: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from headstart.report.html import table_rows

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    header, rows = table_rows(results)
    table = Table(title=f"{results['task']}: {results['metric']} on {results['dev']['path']}")
    for number, column in enumerate(header):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print("mean over the seeds (95 % interval); * differs from the row above by more than chance (p < 0.05)")
    if not quiet:
        show_findings(results, console)
    typer.echo(out / "report.html")


def show_findings(results: dict[str, Any], console: Console) -> None:
    def say(line: str = "") -> None:
        console.print(line, markup=False, soft_wrap=True)

    sections = {
        "Labels saved": [saved["sentence"] for saved in results["labels_saved"]],
        "Layer weights": mix_lines(results),
        "Time": time_lines(results),
        "Notices": results["notices"],
    }
    for title, lines in sections.items():
        if lines:
            say(title)
            for line in lines:
                say(f"  {line}")
    if results["advice"]:
        say()
        say(results["advice"]["sentence"])


def mix_lines(results: dict[str, Any]) -> list[str]:
    """The learned weight of each layer, with the most labels, as a mean over the seeds."""
    from headstart.report.plots import mix_groups
    from headstart.transfer.card import mix_text

    return [f"{mix.title}: {mix_text({'weights': mix.weights, 'gamma': mix.gamma})}" for mix in mix_groups(results)]


def time_lines(results: dict[str, Any]) -> list[str]:
    from headstart.report.wording import duration

    most = results["labels"][-1]
    seconds = {entry["row"]: entry["seconds"] for entry in results["table"] if entry["labels"] == most}
    lines = []
    for row in results["rows"]:
        before = row["pretraining_seconds"]
        pretrained = "" if before is None else f"pretrained in {duration(before)}, then "
        lines.append(f"{row['title']}: {pretrained}{seconds[row['name']]:.1f} s for a fit with {most:,} labels")
    return lines
