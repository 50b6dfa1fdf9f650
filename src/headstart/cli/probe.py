"""`headstart probe SRC`: what each layer of an encoder knows about the tags of words or the labels of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import AsJson, Plot, Quiet, SourceArgument, input_settings, reader_options
from headstart.cli.text_table import text_table
from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.inspection.probe_results import Probed


@reader_options(("column", "text_field", "label_field", "labels_as", "separator"))
def probe(
    source: SourceArgument,
    *,
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="Labelled examples that the probes learn.")],
    dev: Annotated[Path, typer.Option("--dev", metavar="FILE", help="Labelled examples to score them on.")],
    task: Annotated[str, typer.Option("--task", help="tag: a label per word; classify: a label per text.")] = "tag",
    words: Annotated[
        int | None,
        typer.Option("--words", help="Words to draw from each file, or texts. Default: 20,000 words, 5,000 texts."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws and of the control task.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    reading: dict[str, Any],
) -> None:
    """Fit a linear probe to every layer, and the same probe to a control task of random tags."""
    from headstart.config import pick
    from headstart.inspection.probe import PROBES
    from headstart.inspection.probe_results import draw_probes
    from headstart.report.drawing import check_picture, style, write_picture
    from headstart.tasks import task_class
    from headstart.weights.sources import open_source

    check_picture(plot)
    kind = task_class(task)
    run_probe = pick(PROBES, kind.name, "probe")
    examples = input_settings(kind, reading)
    sides = [kind.read(path, examples) for path in (data, dev)]
    most = {} if words is None else {"most": words}
    found = watched(run_probe(watched(open_source(source), quiet), *sides, **most, seed=seed), quiet)
    if plot is not None:
        with style():
            write_picture(draw_probes(found), plot)
    if as_json:
        typer.echo(json.dumps(found.as_table(), ensure_ascii=False))
        return
    for line in lines_of(found):
        typer.echo(line)


def lines_of(found: Probed) -> list[str]:
    """A row for each layer, between what was probed and what a table of words would score."""
    from headstart.report.wording import percent

    lines = [
        f"{found.encoder}: {found.train:,} {found.unit} learned, {found.dev:,} scored, {found.labels} labels",
        *text_table(*found.rows()),
        f"baseline, {found.baseline_title}: {percent(found.baseline)}",
    ]
    if found.left_out:
        lines.append(f"{found.left_out:,} sentences were longer than what this encoder reads, and were left out.")
    return lines
