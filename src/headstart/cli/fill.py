"""`headstart fill SRC TEXT`: the pieces that a BERT predicts for each [MASK] of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import Quiet, SourceArgument
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.fill import Guess

Most = Annotated[int, typer.Option("--most", help="How many to show.")]


def fill(
    source: SourceArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A text with [MASK] in it.")],
    most: Most = 5,
    quiet: Quiet = False,
) -> None:
    """The most probable pieces for each [MASK] of a text."""
    from headstart.inspection.fill import fill as run_fill
    from headstart.weights.sources import open_source

    check_most(most)
    for number, guesses in enumerate(run_fill(watched(open_source(source), quiet), text, most), start=1):
        if number > 1:
            typer.echo()
        show_guesses(guesses)


def show_guesses(guesses: list[Guess]) -> None:
    for guess in guesses:
        typer.echo(f"{100 * guess.probability:5.1f} %  {guess.piece}")


def check_most(most: int) -> None:
    from headstart.errors import ConfigError

    if most < 1:
        raise ConfigError(f"--most is a count of one or more; got {most}.")
