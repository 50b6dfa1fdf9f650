"""`headstart next SRC TEXT`: the words that an ELMo expects after a text, or before it, and texts it goes on with."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from headstart.cli.fill import Most, check_most, guess_lines
from headstart.cli.options import AsJson, Quiet, SourceArgument
from headstart.cli.weights import watched

AS_IT_IS = 1.0


def next_words(
    source: SourceArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words so far.")],
    backward: Annotated[bool, typer.Option("--backward", help="Predict the word before the text instead.")] = False,
    most: Most = 5,
    words: Annotated[
        int | None,
        typer.Option("--generate", metavar="N", help="Go on for N words, or until the sentence ends."),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw each word by its probability; otherwise the most probable is taken.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature", metavar="T", help="Draw as --sample; below 1, probable words more often. Default: 1."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of --sample.")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The most probable next words of a text, or how it goes on."""
    from headstart.errors import ConfigError
    from headstart.inspection.next_words import expect, generate
    from headstart.weights.sources import open_source

    check_most(most)
    if words is None and (sample or temperature is not None):
        raise ConfigError("--sample and --temperature are for --generate N: say how many words to draw.")
    if sample and temperature is None:
        temperature = AS_IT_IS
    pretrained = watched(open_source(source), quiet)
    if words is None:
        expected = expect(pretrained, text, most, backward=backward)
        lines, table = guess_lines(expected.guesses), expected.as_table()
    else:
        made = generate(pretrained, text, words, backward=backward, temperature=temperature, seed=seed)
        lines, table = [made.text], made.as_table()
    for line in [json.dumps(table, ensure_ascii=False)] if as_json else lines:
        typer.echo(line)
