"""`headstart encode SRC TEXT`: the vectors of every line of a text, as a .npy, .h5 or .parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headstart.cli.options import Quiet, SourceArgument
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.pretrained import Layers


def encode(
    source: SourceArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A sentence per line, or per row of a table; - is standard input.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="New file: .npy, .h5 (ELMo's layout) or .parquet.")
    ],
    layers: Annotated[str, typer.Option("--layers", help="top, all, or the number of a layer.")] = "top",
    pool: Annotated[
        str | None,
        typer.Option("--pool", help="mean (default) or first: a row per line; words (.h5: always): a row per word."),
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", help="float32, or int8 (BERT: faster, rounded).")
    ] = "float32",
    field: Annotated[str | None, typer.Option("--field", help="Tables: the column with the text.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write the vectors of every line of a text into a file. Stopped, the same command goes on where it was."""
    from headstart.inspection.encode import encode as run_encode
    from headstart.inspection.unfinished import folder_of

    work = run_encode(source, text, out, layers=layer(layers), pool=pool, precision=precision, field=field)
    try:
        done = watched(work, quiet)
    except KeyboardInterrupt:
        work.close()
        if folder_of(out).exists():
            typer.echo(f"headstart: {folder_of(out)} keeps what is encoded; the same command goes on there.", err=True)
        raise
    if done.cut:
        typer.echo(
            f"headstart: {done.cut:,} texts were longer than what this encoder reads; the middle of each was left out.",
            err=True,
        )
    rows = " x ".join(f"{n:,}" for n in done.shape)
    empty = f", {done.empty:,} of them without a word" if done.empty else ""
    typer.echo(f"{done.path}: {rows}, float32; {done.texts:,} lines{empty}")
    if done.lengths:
        typer.echo(f"{done.lengths}: how many words each line has")


def layer(given: str) -> Layers:
    """A number, or a word; `encode` checks it once the number of layers is known."""
    try:
        return int(given)
    except ValueError:
        return cast("Layers", given)
