"""`headstart layers RUN...`: which layers task models read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.options import AsJson, Plot
from headstart.cli.text_table import text_table


def layers(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Task models, as `transfer` leaves them.")],
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """The learned layer weights s_j and gamma of several tasks, side by side."""
    from headstart.inspection.layers import draw_mixes, layers_of, rows_of
    from headstart.report.drawing import check_picture, style, write_picture

    check_picture(plot)
    found = layers_of(runs)
    if plot is not None:
        with style():
            write_picture(draw_mixes(found), plot)
    if as_json:
        typer.echo(json.dumps(found.as_table(), ensure_ascii=False))
        return
    if found.learned:
        for line in text_table(*rows_of(found)):
            typer.echo(line)
    for note in found.notes():
        typer.echo(note)
