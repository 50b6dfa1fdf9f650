"""`headstart compare sentiment`: flags to one call, watched as a growing table, and its result on stdout."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from headstart.compare import CompareEvent

PIPE_WIDTH = 160


def compare(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What the labels tell: sentiment.")],
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
        typer.Option("--with", metavar="RUN", help="Folder of a pretrained run that takes part; may be given often."),
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
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Column or key of the text in --train and --dev.")
    ] = None,
    label_field: Annotated[
        str | None, typer.Option("--label-field", help="Column or key of the label in --train and --dev.")
    ] = None,
    labels_as: Annotated[
        int | None, typer.Option("--labels-as", metavar="2|5", help="Classes to read sentiment trees as.")
    ] = None,
    one_per_line: Annotated[
        bool, typer.Option("--one-per-line", help="In the .txt files of --text, each line is a document.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="A.B=C", help="One setting, such as transfer.fitting.epochs=3; often if need be."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the table and the report's path only.")] = False,
) -> None:
    """Compare head starts on your labels: scratch, word vectors, ELMo and BERT, and say which to deploy.

    Stopped or killed, the same command goes on where it was.
    """
    from headstart.compare import compare as run_comparison
    from headstart.config import parse_assignment, resolve
    from headstart.tasks.examples import ExamplesConfig

    reading = {"text_field": text_field, "label_field": label_field, "labels_as": labels_as}
    assigned: dict[str, Any] = {"pretrain.text.one_per_line": True} if one_per_line else {}
    assigned |= {".".join(keys): value for keys, value in map(parse_assignment, settings or [])}
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
        examples=resolve(ExamplesConfig, {key: value for key, value in reading.items() if value is not None}),
        settings=assigned,
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
    lines = []
    for row in results["rows"]:
        cells = [c for c in results["cells"] if c["row"] == row["name"] and c["labels"] == results["labels"][-1]]
        for place in cells[0]["mix"] if cells else ():
            weights = [mean(layer) for layer in zip(*(cell["mix"][place]["weights"] for cell in cells), strict=True)]
            gamma = mean([cell["mix"][place]["gamma"] for cell in cells])
            if len(weights) == 1:
                continue
            names = ["words", *(f"layer {number}" for number in range(1, len(weights)))]
            shares = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, weights, strict=True))
            lines.append(f"{row['title']} ({place}): {shares}; gamma {gamma:.2f}")
    return lines


def time_lines(results: dict[str, Any]) -> list[str]:
    from headstart.card import duration

    most = results["labels"][-1]
    seconds = {entry["row"]: entry["seconds"] for entry in results["table"] if entry["labels"] == most}
    lines = []
    for row in results["rows"]:
        before = row["pretraining_seconds"]
        pretrained = "" if before is None else f"pretrained in {duration(before)}, then "
        lines.append(f"{row['title']}: {pretrained}{seconds[row['name']]:.1f} s for a fit with {most:,} labels")
    return lines


def mean(values: Any) -> float:
    return float(sum(values) / len(values))
