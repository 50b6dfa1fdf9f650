"""`headstart fill SRC TEXT`: the words that a BERT predicts for the [MASK]s of a text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import AsJson, Quiet, SourceArgument
from headstart.cli.text_table import text_table
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.fill import Guess
    from headstart.inspection.fill_words import Filled

Most = Annotated[int, typer.Option("--most", help="How many to show.")]


def fill(
    source: SourceArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text with [MASK] in it, once or several times.")],
    most: Most = 5,
    pieces: Annotated[int, typer.Option("--pieces", help="A word may have so many pieces.")] = 1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The most probable words for each [MASK] of a text, and for all of them together."""
    from headstart.inspection.fill_words import fill_words
    from headstart.weights.sources import open_source

    check_most(most)
    found = fill_words(watched(open_source(source), quiet), text, most, pieces=pieces)
    if as_json:
        typer.echo(json.dumps(found.as_table(), ensure_ascii=False))
        return
    for line in lines_of(found, pieces):
        typer.echo(line)


def lines_of(found: Filled, pieces: int) -> list[str]:
    """A single mask that takes one piece needs no more than its probabilities."""
    if len(found.alone) == 1:
        return guess_lines(found.alone[0]) if pieces == 1 else text_table(*found.rows())
    lines = []
    for number, guesses in enumerate(found.alone, start=1):
        lines += [f"[MASK] {number} alone:", *guess_lines(guesses), ""]
    return [*lines, *text_table(*found.rows())]


def guess_lines(guesses: Iterable[Guess]) -> list[str]:
    return [f"{100 * guess.probability:5.1f} %  {guess.piece}" for guess in guesses]


def check_most(most: int) -> None:
    from headstart.errors import ConfigError

    if most < 1:
        raise ConfigError(f"--most is a count of one or more; got {most}.")
