"""`headstart score SRC --in F`: how probable each line of a text is to a language model."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import AsJson, Quiet, SourceArgument
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.score_results import ScoredLine, SentenceScore, Total
    from headstart.progress import Notice, Progress

LINE, COLUMN = 7, 9
"""Widths of the line's number and of every figure."""


def score(
    source: SourceArgument,
    *,
    text: Annotated[
        str,
        typer.Option("--in", metavar="F", help="A sentence per line, or per row of a table; - is standard input."),
    ],
    field: Annotated[str | None, typer.Option("--field", help="Tables: the column with the text.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Perplexity of each sentence by direction (ELMo), or its pseudo-perplexity (BERT), and of all together."""
    from headstart.inspection.score import score as run_score
    from headstart.text.lines import Lines
    from headstart.weights.sources import open_source

    lines = Lines(text, field)
    work = run_score(watched(open_source(source), quiet), lines)
    total = watched(printed(work, as_json), quiet)
    for line in [json.dumps(total.as_table())] if as_json else total_lines(total):
        typer.echo(line)


def printed(
    work: Generator[Progress | Notice | ScoredLine, None, Total], as_json: bool
) -> Generator[Progress | Notice, None, Total]:
    """Print each line as soon as it has its score; the other events are passed on."""
    from headstart.inspection.score_results import ScoredLine

    has_head = as_json
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            total: Total = end.value
            return total
        if not isinstance(event, ScoredLine):
            yield event
            continue
        if not has_head:
            typer.echo(f"{event.score.title}\n{row_of('line', event.score.headers)}")
            has_head = True
        typer.echo(json.dumps(event.as_table()) if as_json else row_of(f"{event.line:,}", event.score.cells()))


def row_of(first: str, cells: tuple[str, ...]) -> str:
    return "  ".join([f"{first:>{LINE}}", *(f"{cell:>{COLUMN}}" for cell in cells)])


def total_lines(total: Total) -> list[str]:
    score: SentenceScore = total.score
    lines = [row_of("all", score.cells()), score.unknown_note]
    if total.left_out:
        lines.append(f"Left out, as longer than what this encoder reads: {total.left_out:,}.")
    if total.empty:
        lines.append(f"Lines without a word: {total.empty:,}.")
    return lines
