"""`headstart neighbours SRC QUERY`: the words with the nearest vectors, in the vocabulary or in a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.fill import Most, check_most
from headstart.cli.options import Among, AsJson, OneLayer, Quiet, SourceArgument, TextField
from headstart.cli.sentence_lines import sentence_line
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.neighbours import NearestOccurrences, Neighbour
    from headstart.pretrained import Pretrained

WORD_VECTORS = "words-mini"


def neighbours(
    source: SourceArgument,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", help="Word vectors: a word. ELMo, BERT: a sentence with one word marked, 'They [play] .'."
        ),
    ],
    among: Among = None,
    most: Most = 8,
    layer: OneLayer = None,
    words: Annotated[int, typer.Option("--words", help="How much of TEXT is indexed, from its beginning.")] = 1_000_000,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="DIR", help="Folder of the index. Default: one in the cache."),
    ] = None,
    static: Annotated[
        str, typer.Option("--static", metavar="SRC", help="Word vectors to show beside the occurrences, or off.")
    ] = WORD_VECTORS,
    field: TextField = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The words nearest to a word: of the vocabulary (word vectors), or where they occur in a text (ELMo, BERT)."""
    from headstart.inspection.neighbours import NearestOccurrences
    from headstart.inspection.neighbours import neighbours as run_neighbours
    from headstart.weights.sources import open_source

    check_most(most)
    pretrained = watched(open_source(source), quiet)
    search = run_neighbours(
        pretrained,
        query,
        among or (),
        static=beside(pretrained, static, quiet),
        most=most,
        layer="top" if layer is None else layer,
        words=words,
        index=index,
        field=field,
    )
    found = watched(search, quiet)
    if as_json:
        typer.echo(json.dumps(found.as_table(), ensure_ascii=False))
    elif isinstance(found, NearestOccurrences):
        show_occurrences(found)
    else:
        show_words(found.neighbours or ())


def beside(pretrained: Pretrained, static: str, quiet: bool) -> Pretrained | None:
    """The word vectors to compare with; word vectors themselves are compared with none."""
    from headstart.config import OFF
    from headstart.weights.sources import open_source

    return watched(open_source(static), quiet) if pretrained.encoder.contextual and static != OFF else None


def show_occurrences(found: NearestOccurrences) -> None:
    typer.echo(f"{found.encoder}, layer {found.layer}: nearest of {found.searched:,} occurrences to '{found.query}'")
    for one in found.occurrences:
        typer.echo(f"{one.cosine:6.3f}  {sentence_line(one.sentence, one.start, one.end, indent=8)}")
    if found.static is None:
        return
    typer.echo(f"\n{found.static.encoder}: nearest words to '{found.static.word}', whatever its sentence")
    if found.static.neighbours is None:
        typer.echo("        none: it is not in their vocabulary")
    show_words(found.static.neighbours or ())


def show_words(words: tuple[Neighbour, ...]) -> None:
    for one in words:
        typer.echo(f"{one.cosine:6.3f}  {one.word}")
