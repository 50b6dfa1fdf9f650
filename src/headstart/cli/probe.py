"""`headstart probe SRC`: what each layer of an encoder knows about the tags of words or the labels of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import Quiet, SourceArgument, input_settings, reader_options
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
    as_json: Annotated[bool, typer.Option("--json", help="Give the figures as JSON.")] = False,
    quiet: Quiet = False,
    reading: dict[str, Any],
) -> None:
    """Fit a linear probe to every layer, and the same probe to a control task of random tags."""
    from headstart.config import pick
    from headstart.inspection.probe import PROBES
    from headstart.tasks import task_class
    from headstart.weights.sources import open_source

    kind = task_class(task)
    run_probe = pick(PROBES, kind.name, "probe")
    examples = input_settings(kind, reading)
    sides = [kind.read(path, examples) for path in (data, dev)]
    most = {} if words is None else {"most": words}
    found = watched(run_probe(watched(open_source(source), quiet), *sides, **most, seed=seed), quiet)
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
        "layer  accuracy   95 % interval  control  selectivity",
    ]
    for layer in found.layers:
        low, high = (f"{100 * bound:.1f}" for bound in layer.interval)
        control = "      -" if layer.control is None else f"{percent(layer.control):>7}"
        selectivity = "          -" if layer.selectivity is None else f"{100 * layer.selectivity:>11.1f}"
        lines.append(
            f"{layer.layer:>5}   {percent(layer.accuracy):>7}  {f'{low} to {high}':>14}  {control}  {selectivity}"
        )
    title = "each word's most frequent tag" if found.unit == "words" else "the most frequent label"
    lines.append(f"baseline, {title}: {percent(found.baseline)}")
    if found.left_out:
        lines.append(f"{found.left_out:,} sentences were longer than what this encoder reads, and were left out.")
    return lines
