"""`headstart encode SRC TEXT`: the vectors of every line of a text, as a .npy, .h5 or .parquet file."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

from headstart.cli.options import Quiet, SourceArgument
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.encode import Encoded
    from headstart.pretrained import Layers
    from headstart.progress import Notice, Progress
    from headstart.training.ranks import Ranks

    Encoding: TypeAlias = Generator[Progress | Notice, None, Encoded]


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
    from headstart.training.launch import launch_of
    from headstart.training.ranks import joined

    how: dict[str, Any] = {"layers": layer(layers), "pool": pool, "precision": precision, "field": field}
    with joined(launch_of(os.environ)) as ranks:
        done = encoded(run_encode(source, text, out, **how, ranks=ranks), out, ranks, quiet)
    if done is None:
        return
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


def encoded(work: Encoding, out: Path, ranks: Ranks, quiet: bool) -> Encoded | None:
    """The result; None where several processes were stopped, which is no failure: torchrun would restart it."""
    from headstart.errors import EndedElsewhereError
    from headstart.inspection.unfinished import folder_of

    launch = ranks.launch
    try:
        return watched(until_stopped(work, ranks) if launch.joins else work, quiet or not launch.is_first)
    except EndedElsewhereError:
        ranks.ended()  # raises it again if a mistake ended the first process
    except KeyboardInterrupt:
        work.close()
        if folder_of(out).exists():
            typer.echo(f"headstart: {folder_of(out)} keeps what is encoded; the same command goes on there.", err=True)
        if not launch.joins:
            raise
    return None


def until_stopped(work: Encoding, ranks: Ranks) -> Encoding:
    """Ctrl-C or SIGTERM to one of several processes stops each after its current batch, as Ctrl-C does one alone."""
    from headstart.cli.stopping import stop_requests

    with stop_requests(ranks) as stop:
        while True:
            try:
                event = next(work)
            except StopIteration as end:
                done: Encoded = end.value
                return done
            yield event
            if ranks.should_stop(stop.asked) or stop.asked:
                raise KeyboardInterrupt


def layer(given: str) -> Layers:
    """A number, or a word; `encode` checks it once the number of layers is known."""
    try:
        return int(given)
    except ValueError:
        return cast("Layers", given)
