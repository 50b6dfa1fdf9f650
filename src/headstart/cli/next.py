"""`headstart next SRC TEXT`: the words that an ELMo expects after a text, or before it."""

from __future__ import annotations

from typing import Annotated

import typer

from headstart.cli.fill import Most, check_most, show_guesses
from headstart.cli.options import Quiet, SourceArgument
from headstart.cli.weights import watched


def next_words(
    source: SourceArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words so far.")],
    backward: Annotated[bool, typer.Option("--backward", help="Predict the word before the text instead.")] = False,
    most: Most = 5,
    quiet: Quiet = False,
) -> None:
    """The most probable next words of a text."""
    from headstart.inspection.next_words import next_words as run_next_words
    from headstart.weights.sources import open_source

    check_most(most)
    show_guesses(run_next_words(watched(open_source(source), quiet), text, most, backward=backward))
