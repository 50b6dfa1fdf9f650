"""`headstart import` and `headstart export`: other people's files into a run directory, and out again."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from headstart.cli.options import Quiet, SourceArgument

if TYPE_CHECKING:
    from headstart.progress import Notice, Progress

ResultT = TypeVar("ResultT")


def import_(
    source: SourceArgument,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the run.")],
    words: Annotated[
        Path | None, typer.Option("--words", metavar="FILE", help="Of word vectors, keep these: one word per line.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Keep weights from elsewhere as a run directory, which every other command takes."""
    from headstart.exporting import import_run

    pretrained = watched(import_run(source, out, words=words), quiet)
    for notice in pretrained.notices:
        typer.echo(notice, err=True)
    parts = ", ".join(["encoder", *sorted(pretrained.heads)])
    typer.echo(f"{out}: {pretrained.kind} with {len(pretrained.tokenizer):,} entries ({parts}); see {out / 'CARD.md'}")


def export(
    source: SourceArgument,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT", help="hf, elmo, word2vec, word2vec-binary, glove, onnx or compact."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files; must be new or empty.")],
    words: Annotated[
        Path | None,
        typer.Option("--words", metavar="FILE", help="elmo: write these words' vectors too, one word per line."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="compact: of the matrices, int8 or float16. Default: int8.")
    ] = None,
    held_out: Annotated[
        list[str] | None,
        typer.Option("--held-out", metavar="TEXT", help="compact: measure the perplexity before and after on this."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write an encoder or a classifier as files that other tools open, or a run in a quarter of its bytes."""
    from headstart.exporting import export as run_export

    work = run_export(source, to, out, words=words, precision=precision, held_out=held_out)
    folder = watched(work, quiet)
    typer.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def watched(work: Generator[Progress | Notice, None, ResultT], quiet: bool) -> ResultT:
    """Show how far a generator is, and give back what it made."""
    from headstart.cli.progress_lines import display

    with display(quiet) as show:
        while True:
            try:
                show(next(work))
            except StopIteration as end:
                made: ResultT = end.value
                return made


def fetch_named(sources: Iterable[str | Path | None], quiet: bool) -> None:
    """Download what is named and not here yet, with a bar; the verbs then find it in the cache."""
    from headstart.config import cache_home
    from headstart.weights.catalogue import catalogue
    from headstart.weights.hub import PREFIX
    from headstart.weights.sources import local

    for source in map(str, sources):
        if not Path(source).exists() and (source.startswith(PREFIX) or source in catalogue()):
            watched(local(source, cache_home()), quiet)
