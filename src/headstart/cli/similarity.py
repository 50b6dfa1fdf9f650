"""`headstart similarity SRC --data PAIRS`: whether vectors are alike where people say that words or sentences are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.encode import layer
from headstart.cli.options import AsJson, Plot, Quiet, SourceArgument
from headstart.cli.text_table import text_table
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.similarity import Similarity


def similarity(
    source: SourceArgument,
    *,
    data: Annotated[
        Path,
        typer.Option(
            "--data", metavar="PAIRS", help="Pairs of words or sentences with a score: SimLex, WordSim, SICK, STS-B."
        ),
    ],
    text_field: Annotated[
        str | None, typer.Option("--text-field", help="Column with the first text. Default: word1, sentence1 ...")
    ] = None,
    second_field: Annotated[
        str | None, typer.Option("--second-field", help="Column with the second text. Default: word2, sentence2 ...")
    ] = None,
    label_field: Annotated[
        str | None, typer.Option("--label-field", help="Column with the score. Default: score, SimLex999 ...")
    ] = None,
    separator: Annotated[
        str | None, typer.Option("--separator", help="What separates columns. Default: found out.")
    ] = None,
    layers: Annotated[str, typer.Option("--layers", help="all, top, or the number of a layer.")] = "all",
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Spearman's rho of the cosines of each layer with people's scores, with its 95 % interval."""
    from headstart.config import resolve
    from headstart.inspection.scored_pairs import read_scored_pairs
    from headstart.inspection.similarity import similarity as run_similarity
    from headstart.inspection.similarity_picture import write_similarity
    from headstart.report.drawing import check_picture
    from headstart.tasks.pair_reading import PairInputConfig
    from headstart.weights.sources import open_source

    check_picture(plot)
    columns = {"text_field": text_field, "second_field": second_field, "label_field": label_field}
    given = {name: value for name, value in {**columns, "separator": separator}.items() if value is not None}
    pairs = read_scored_pairs(data, resolve(PairInputConfig, given, "the options"))
    pretrained = watched(open_source(source), quiet)
    found = watched(run_similarity(pretrained, pairs, layers=layer(layers), seed=seed), quiet)
    if plot is not None:
        write_similarity(found, plot)
    for line in [json.dumps(found.as_table(), ensure_ascii=False)] if as_json else lines_of(found):
        typer.echo(line)


def lines_of(found: Similarity) -> list[str]:
    lines = [f"{found.encoder}: {found.covered:,} of {found.pairs:,} pairs of {found.unit}", *text_table(*found.rows())]
    if found.left_out:
        lines.append(f"Left out, as nothing is known of one of their texts: {found.left_out:,} pairs.")
    if found.cut:
        lines.append(f"Longer than what this encoder reads, and cut in their middle: {found.cut:,} texts.")
    return lines
