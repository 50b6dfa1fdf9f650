"""`headstart evaluate` and `headstart predict`: task models put to work."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import Column, LabelField, LabelsAs, Separator, TextField, input_settings, labelled_input

if TYPE_CHECKING:
    from headstart.transfer.task_model import TaskModel

PREDICTED_AT_ONCE = 256
Precision = Annotated[str, typer.Option("--precision", help="float32, or int8 (BERT only: faster, nearly the same).")]


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a task model.")],
    data: Annotated[Path, typer.Option("--data", metavar="F", help="Labelled examples.")],
    text_field: TextField = None,
    label_field: LabelField = None,
    labels_as: LabelsAs = None,
    separator: Separator = None,
    column: Column = None,
    precision: Precision = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Give the figures as JSON.")] = False,
) -> None:
    """Score a task model on labelled examples."""
    from headstart.report.wording import percent
    from headstart.transfer.evaluate import evaluate_model
    from headstart.transfer.loading import load_task_model

    loaded = load_task_model(run, precision=precision)
    examples = labelled_input(type(loaded.task), text_field, label_field, labels_as, separator, column)
    found = evaluate_model(loaded, data, examples, run)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    scores = ", ".join(f"{title} {percent(found[name])}" for name, title in loaded.task.score_titles().items())
    typer.echo(f"{found['examples']:,} {loaded.task.many}: {scores}")
    for line in loaded.task.describe(found):
        typer.echo(line)
    if found["truncated"]:
        typer.echo(f"{found['truncated']:,} texts were longer than what it reads; the middle of each was left out.")


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a task model.")],
    source: Annotated[
        str,
        typer.Option("--in", metavar="F", help="Lines, .jsonl, .csv, .tsv, .parquet, CoNLL columns; - is stdin."),
    ] = "-",
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="classify: tsv, json, csv. tag: conll, json, view.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --to json.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="tag: also write a page to look at.")
    ] = None,
    text_field: TextField = None,
    separator: Separator = None,
    input_as: Annotated[
        str | None, typer.Option("--input-as", help="tag: read text, columns, or words (JSON lines).")
    ] = None,
    precision: Precision = "float32",
) -> None:
    """Answer for every text of a file, in its order; a blank line gets an empty answer."""
    from headstart.config import pick
    from headstart.transfer.loading import load_task_model

    loaded = load_task_model(run, precision=precision)
    task = loaded.task
    given = {"text_field": text_field, "separator": separator, "input_as": input_as}
    config = input_settings(type(task), given)
    formats = task.writers()
    writer = pick(formats, "json" if as_json else to or task.default_format(sys.stdout.isatty()), "format")(task)
    page = task.page(html) if html is not None else None
    truncated = 0
    write(writer.begin())
    for chunk in in_chunks(task.read_inputs(source, config)):
        truncated += answer(loaded, chunk, writer, page)
    write(writer.end())
    if page is not None:
        page.save()
    if truncated:
        said = f"{truncated:,} texts were longer than what this model reads; the middle of each was left out."
        typer.echo(f"headstart: {said}", err=True)


def answer(loaded: TaskModel[Any, Any], examples: list[Any], writer: Any, page: Any) -> int:
    """Write the answers of one chunk; the number of texts that were truncated."""
    found = loaded.answers(examples)
    pairs = list(zip(examples, found.answers, strict=True))
    write(writer.lines(pairs))
    if page is not None:
        page.add(pairs)
    return found.truncated


def write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def in_chunks(examples: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(itertools.islice(examples, PREDICTED_AT_ONCE)):
        yield chunk
