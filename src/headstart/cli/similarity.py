"""`headstart similarity SRC --data PAIRS`: whether vectors are alike where people say that words or sentences are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.encode import layer
from headstart.cli.options import AsJson, Plot, Quiet, SourceArgument, input_settings, reader_options
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.similarity import Similarity


@reader_options(("text_field", "second_field", "label_field", "separator"))
def similarity(
    source: SourceArgument,
    *,
    data: Annotated[
        Path,
        typer.Option(
            "--data", metavar="PAIRS", help="Pairs of words or sentences with a score: SimLex, WordSim, SICK, STS-B."
        ),
    ],
    layers: Annotated[str, typer.Option("--layers", help="all, top, or the number of a layer.")] = "all",
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    reading: dict[str, Any],
) -> None:
    """Spearman's rho of the cosines of each layer with people's scores, with its 95 % interval."""
    from headstart.inspection.scored_pairs import read_scored_pairs
    from headstart.inspection.similarity import similarity as run_similarity
    from headstart.tasks.base import of_class
    from headstart.tasks.pair import Pair
    from headstart.tasks.pair_reading import PairInputConfig
    from headstart.weights.sources import open_source

    if plot is not None:
        from headstart.report.drawing import check_picture

        check_picture(plot)
    pairs = read_scored_pairs(data, of_class(PairInputConfig, input_settings(Pair, reading)))
    pretrained = watched(open_source(source), quiet)
    found = watched(run_similarity(pretrained, pairs, layers=layer(layers), seed=seed), quiet)
    if plot is not None:
        from headstart.inspection.similarity_picture import write_similarity

        write_similarity(found, plot)
    for line in [json.dumps(found.as_table(), ensure_ascii=False)] if as_json else lines_of(found):
        typer.echo(line)


def lines_of(found: Similarity) -> list[str]:
    lines = [
        f"{found.encoder}: {found.covered:,} of {found.pairs:,} pairs of {found.unit}",
        "layer     rho    95 % interval",
    ]
    for one in found.layers:
        low, high = one.interval
        lines.append(f"{one.layer:>5}  {one.rho:6.3f}  {f'{low:.3f} to {high:.3f}':>15}")
    if found.left_out:
        lines.append(f"{found.left_out:,} pairs have a word, or only words, that this encoder does not know: left out.")
    if found.cut:
        lines.append(f"{found.cut:,} texts were longer than what this encoder reads; the middle of each was left out.")
    return lines
