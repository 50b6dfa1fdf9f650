"""`headstart attend SRC SENTENCE`: where the attention heads of a BERT look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import AsJson, Plot, Quiet, SourceArgument
from headstart.cli.text_table import text_table
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.attend import Attention


def attend(
    source: SourceArgument,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="The sentence that the heads read.")],
    layer: Annotated[int | None, typer.Option("--layer", help="This layer only, counted from 1.")] = None,
    head: Annotated[int | None, typer.Option("--head", help="This head only, counted from 1.")] = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Show BERT's pieces instead of whole words.")] = False,
    plot: Plot = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page whose words can be pointed at.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What each attention head of a BERT looks at in a sentence."""
    from headstart.atomic import write_text
    from headstart.inspection.attend import attend as run_attend
    from headstart.inspection.attend_picture import draw_attention
    from headstart.inspection.attend_view import attention_page
    from headstart.report.drawing import check_picture, style, write_picture
    from headstart.weights.sources import open_source

    check_picture(plot)
    found = run_attend(watched(open_source(source), quiet), sentence, layer, head, at_words=not pieces)
    if plot is not None:
        with style():
            write_picture(draw_attention(found), plot)
    if html is not None:
        write_text(html, attention_page(found))
    if as_json:
        typer.echo(json.dumps(found.as_table(), ensure_ascii=False))
        return
    for line in lines_of(found):
        typer.echo(line)


def lines_of(found: Attention) -> list[str]:
    from headstart.inspection.attend import table_of
    from headstart.inspection.heads import LEGEND, standing_out

    one = len(found.layers) == len(found.heads) == 1
    where = f", layer {found.layers[0]}, head {found.heads[0]}" if one else ""
    lines = [f"{found.encoder}{where}: the share of attention in %", *text_table(*table_of(found), right=not one)]
    if min(len(found.layers), len(found.heads)) > 1:
        lines[0] = f"{found.encoder}: what each head (column) of each layer looks at most, with its share in %"
        lines += [LEGEND, *text_table(*standing_out(found.summary()), right=False)]
    return lines
