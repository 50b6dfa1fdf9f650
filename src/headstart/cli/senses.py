"""`headstart senses SRC WORD --among TEXT`: the occurrences of a word, clustered by their vectors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import Among, AsJson, OneLayer, Plot, Quiet, SourceArgument, TextField
from headstart.cli.sentence_lines import sentence_line
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.sense_results import SenseClusters


def senses(
    source: SourceArgument,
    word: Annotated[str, typer.Argument(metavar="WORD", help="In any case: bank is Bank, too.")],
    among: Among = None,
    clusters: Annotated[
        int | None, typer.Option("--clusters", help="How many. Default: 1 to 8, as the vectors decide.")
    ] = None,
    most: Annotated[int, typer.Option("--most", help="Sentences to cluster, evenly from all with the word.")] = 500,
    shown: Annotated[int, typer.Option("--sentences", help="Sentences to show of each cluster.")] = 3,
    layer: OneLayer = None,
    field: TextField = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the clustering.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the occurrences of a word by their vectors: the senses that an ELMo or a BERT tells apart."""
    from headstart.inspection.sense_clusters import sense_clusters
    from headstart.report.drawing import check_picture
    from headstart.weights.sources import open_source

    check_picture(plot)
    found = watched(
        sense_clusters(
            watched(open_source(source), quiet),
            word,
            among or (),
            clusters=clusters,
            most=most,
            layer="top" if layer is None else layer,
            field=field,
            seed=seed,
        ),
        quiet,
    )
    if plot is not None:
        from headstart.inspection.sense_picture import write_senses

        write_senses(found, plot)
    if as_json:
        typer.echo(json.dumps(found.as_table(), ensure_ascii=False))
    else:
        show_clusters(found, shown)


def show_clusters(found: SenseClusters, shown: int) -> None:
    """Each cluster with its share, what tells it from the others, and its most central sentences."""
    from headstart.report.wording import percent

    n = len(found.clusters)
    split = "one cluster" if found.silhouette is None else f"{n} clusters, silhouette {found.silhouette:.2f}"
    typer.echo(
        f"{found.encoder}, layer {found.layer}: {found.occurrences:,} of {found.found:,} sentences with "
        f"'{found.word}', {split}"
    )
    for number, cluster in enumerate(found.clusters, start=1):
        size = len(cluster.occurrences)
        typer.echo(f"\n{number}  {cluster.name}: {size:,} occurrences, {percent(size / found.occurrences)}")
        for one in cluster.occurrences[:shown]:
            place = one.place
            typer.echo(f"{one.cosine:6.3f}  {sentence_line(place.sentence, place.start, place.end, indent=8)}")
