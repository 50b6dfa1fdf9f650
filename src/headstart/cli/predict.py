"""`headstart evaluate` and `headstart predict`: a classifier in use."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from headstart.cli.transfer import LabelField, LabelsAs, TextField, examples_config

if TYPE_CHECKING:
    from headstart.transfer.task_model import Classifier

PREDICTED_AT_ONCE = 256
Precision = Annotated[str, typer.Option("--precision", help="float32, or int8 (BERT only: quicker, nearly the same).")]


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a classifier.")],
    data: Annotated[Path, typer.Option("--data", metavar="F", help="Labelled examples.")],
    text_field: TextField = None,
    label_field: LabelField = None,
    labels_as: LabelsAs = None,
    precision: Precision = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Give the figures as JSON.")] = False,
) -> None:
    """Score a classifier on labelled examples."""
    from headstart.transfer.evaluate import evaluate as run_evaluate

    found = run_evaluate(run, data, examples_config(text_field, label_field, labels_as), precision=precision)
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    typer.echo(
        f"{found['examples']:,} examples: accuracy {100 * found['accuracy']:.1f} %, "
        f"macro-F1 {100 * found['macro_f1']:.1f} %"
    )
    width = max(5, *(len(name) for name in found["labels"]))
    typer.echo(f"{'label':<{width}}  precision   recall       F1  examples")
    for name, row in found["labels"].items():
        figures = f"{100 * row['precision']:7.1f} %  {100 * row['recall']:5.1f} %  {100 * row['f1']:5.1f} %"
        typer.echo(f"{name:<{width}}  {figures}  {row['examples']:8,}")
    if found["truncated"]:
        typer.echo(f"{found['truncated']:,} texts were longer than what it reads; the middle of each was left out.")


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a classifier.")],
    source: Annotated[
        str, typer.Option("--in", metavar="F", help="Lines of text, or JSON lines; - is standard input.")
    ] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with every probability.")] = False,
    text_field: Annotated[str, typer.Option("--text-field", help="JSON lines: the field with the text.")] = "text",
    precision: Precision = "float32",
) -> None:
    """Label texts, one a line: as `label TAB probability TAB text`, or as JSON."""
    from headstart.transfer.task_model import load_classifier

    classifier = load_classifier(run, precision=precision)
    truncated = 0
    with open_lines(source) as file:
        for texts in in_chunks(read_texts(file, source, text_field)):
            truncated += show_predictions(classifier, texts, as_json)
    if truncated:
        said = f"{truncated:,} texts were longer than what this classifier reads; the middle of each was left out."
        typer.echo(f"headstart: {said}", err=True)


@contextmanager
def open_lines(source: str) -> Iterator[IO[bytes]]:
    from headstart.errors import DataError

    if source == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(source, "rb") as file:
            yield file
    except OSError as error:
        raise DataError(f"{source}: cannot be read ({error.strerror}). Give a file of lines, or - .") from error


def read_texts(file: IO[bytes], source: str, text_field: str) -> Iterator[str]:
    """The text of each line. If the first line is a JSON object, all of them are."""
    from headstart.errors import DataError

    where = "standard input" if source == "-" else source
    are_json = False
    for number, raw in enumerate(file, 1):
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}:{number}: not UTF-8 ({error.reason}). Convert it to UTF-8 first.") from error
        if number == 1:
            are_json = line.lstrip().startswith("{")
        text = json_text(line, text_field, f"{where}:{number}") if are_json else line
        if not text.strip():
            raise DataError(f"{where}:{number}: the text is empty; there is nothing to classify. Leave the line out.")
        yield text


def json_text(line: str, text_field: str, where: str) -> str:
    from headstart.errors import DataError

    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where}: not JSON ({error}), though the first line is.") from error
    text = record.get(text_field) if isinstance(record, dict) else None
    if not isinstance(text, str):
        raise DataError(f"{where}: has no text in '{text_field}'. Name the field with --text-field.")
    return text


def in_chunks(texts: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(itertools.islice(texts, PREDICTED_AT_ONCE)):
        yield chunk


def show_predictions(classifier: Classifier, texts: list[str], as_json: bool) -> int:
    """Write one line per text; the number of those that were cut."""
    found = classifier.read(texts)
    for text, row in zip(texts, found.probabilities.tolist(), strict=True):
        best = max(range(len(row)), key=row.__getitem__)
        label = classifier.labels[best]
        if as_json:
            scores = {name: round(value, 6) for name, value in zip(classifier.labels, row, strict=True)}
            typer.echo(json.dumps({"label": label, "probabilities": scores, "text": text}, ensure_ascii=False))
        else:
            typer.echo(f"{label}\t{row[best]:.4f}\t{text}")
    return found.truncated
