"""`headstart fill SRC TEXT`: what a BERT would put where the text says [MASK]."""

from __future__ import annotations

from typing import Annotated

import typer

from headstart.cli.weights import SourceArgument, watched


def fill(
    source: SourceArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text with [MASK] in it.")],
    most: Annotated[int, typer.Option("--most", help="How many pieces to show.")] = 5,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show the result only.")] = False,
) -> None:
    """The most probable pieces for each [MASK] of a text."""
    from headstart.inspection.fill import fill as run_fill
    from headstart.weights.sources import open_source

    for number, guesses in enumerate(run_fill(watched(open_source(source), quiet), text, most), start=1):
        if number > 1:
            typer.echo()
        for guess in guesses:
            typer.echo(f"{100 * guess.probability:5.1f} %  {guess.piece}")
