"""`headstart transfer`: labels in, a classifier out."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from headstart.config import Section
    from headstart.report.results import Run, TransferResults
    from headstart.tasks.base import Task as AnyTask
    from headstart.transfer.transfer import TransferEvent, Transferred

KNOWN_TASKS = (
    "classify (also called sentiment): one label per text, any number of labels. "
    "tag (also called ner): one tag per word, such as named entities or parts of speech."
)

Task = Annotated[str, typer.Argument(metavar="TASK", help=KNOWN_TASKS)]
TextField = Annotated[str | None, typer.Option("--text-field", help="Column with the text. Default: text.")]
LabelField = Annotated[str | None, typer.Option("--label-field", help="Column with the label. Default: label.")]
LabelsAs = Annotated[int | None, typer.Option("--labels-as", help="SST trees: 5 labels, or 2 without the neutral.")]
Separator = Annotated[str | None, typer.Option("--separator", help="csv: what separates columns. Default: found out.")]
Column = Annotated[
    int | None, typer.Option("--column", help="CoNLL files: the column with the tag, from 0, or -1 for the last.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, such as fitting.epochs=5.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show the result only.")]


def transfer(
    task: Task,
    train: Annotated[
        Path,
        typer.Option(
            "--train", metavar="F", help="Labelled examples: .csv .tsv .jsonl .parquet, SST, aclImdb; or a name."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the model.")],
    source: Annotated[
        str, typer.Option("--from", metavar="SRC", help="scratch, a pretrained run, minilm, or other people's weights.")
    ] = "scratch",
    how: Annotated[str, typer.Option("--how", help="frozen, finetune or gradual.")] = "frozen",
    dev: Annotated[
        Path | None, typer.Option("--dev", metavar="F", help="Held-out examples; left out, a tenth of --train.")
    ] = None,
    labels: Annotated[int | None, typer.Option("--labels", help="How many labels to learn from. Default: all.")] = None,
    mix: Annotated[str | None, typer.Option("--mix", help="scalar, last, concat, mean or attention.")] = None,
    mix_place: Annotated[str | None, typer.Option("--mix-place", help="input, output or both.")] = None,
    mix_pull: Annotated[float | None, typer.Option("--mix-pull", help="Pull of the layer weights to the mean.")] = None,
    mix_norm: Annotated[bool, typer.Option("--mix-norm", help="Layer norm before the mix.")] = False,
    cell: Annotated[str | None, typer.Option("--cell", help="lstm, gru, rnn or none.")] = None,
    directions: Annotated[str | None, typer.Option("--directions", help="both or forward.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="last, mean, max, attention or first.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Fits, each with its own labels and start.")] = 3,
    held_out: Annotated[
        list[str] | None, typer.Option("--held-out", metavar="TEXT", help="Text to measure forgetting on.")
    ] = None,
    text_field: TextField = None,
    label_field: LabelField = None,
    labels_as: LabelsAs = None,
    separator: Separator = None,
    column: Column = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Carry a pretrained encoder over to a labelled task: frozen features, or fine-tuning."""
    from headstart.cli.weights import fetch_named
    from headstart.tasks import task_class
    from headstart.transfer.transfer import transfer as run_transfer

    fetch_named([source, train, dev], quiet)
    flags = {
        "mix.kind": mix,
        "mix.place": mix_place,
        "mix.pull": mix_pull,
        "mix.norm": mix_norm or None,
        "network.cell": cell,
        "network.directions": directions,
        "network.pool": pool,
    }
    events = run_transfer(
        task,
        source=source,
        how=how,
        train=train,
        dev=dev,
        out=out,
        labels=labels,
        seeds=seeds,
        examples=labelled_input(task_class(task), text_field, label_field, labels_as, separator, column),
        settings=settings_given(flags, settings),
        held_out=held_out,
    )
    done = watch_transfer(events, quiet)
    typer.echo(transferred_text(done.results, done.out))


def watch_transfer(events: Generator[TransferEvent, None, None], quiet: bool) -> Transferred:
    """Show each event; Ctrl-C ends it."""
    from headstart.cli.progress_lines import display
    from headstart.cli.stopping import stop_requests

    with stop_requests() as stop, display(quiet) as show:
        for event in events:
            show(event)
            if stop.asked:
                events.close()
                raise typer.Exit(130)
            last = event
    return cast("Transferred", last)


def labelled_input(
    task: type[AnyTask[Any, Any]],
    text_field: str | None,
    label_field: str | None,
    labels_as: int | None,
    separator: str | None,
    column: int | None,
) -> Section:
    """The settings of the readers of labelled files."""
    given = {
        "text_field": text_field,
        "label_field": label_field,
        "labels_as": labels_as,
        "separator": separator,
        "column": column,
    }
    return input_settings(task, given)


def input_settings(task: type[AnyTask[Any, Any]], given: dict[str, Any]) -> Section:
    """The settings of a task's readers from the options that were given; one that is for another task is an error."""
    from headstart.config import resolve
    from headstart.errors import ConfigError

    table = {name: value for name, value in given.items() if value is not None}
    for name in table:
        if name not in task.Input.model_fields:
            raise ConfigError(f"--{name.replace('_', '-')} is not for {task.title}. Leave it out.")
    return resolve(task.Input, table, "the options")


def settings_given(flags: dict[str, Any], settings: list[str] | None) -> dict[str, Any]:
    """Flags that were given, then --set, as one nested table."""
    from headstart.config import overlay, settings_table

    given = {key: value for key, value in flags.items() if value is not None}
    return overlay(settings_table(given), settings_table(settings or []))


def transferred_text(results: TransferResults, out: Path) -> str:
    from headstart.transfer.card import forgetting_text, learned, mix_text, score_text

    lines = [*map(run_line, results.runs)]
    lines.append(f"{results.source}, {results.how}, {results.labels:,} labelled examples: dev {score_text(results)}")
    lines += [f"layer weights at the {place}: {mix_text(mix)}" for place, mix in learned(results.mix).items()]
    if results.forgetting is not None:
        lines.append(f"forgetting: {forgetting_text(results.forgetting)}")
    if results.truncated:
        lines.append(f"{results.truncated:,} texts were longer than what it reads; the middle of each was left out")
    return "\n".join([*lines, f"{out}: the model of seed {results.best_seed}; see {out / 'CARD.md'}"])


def run_line(run: Run) -> str:
    from headstart.report.wording import duration, percent, score_name

    scores = ", ".join(f"{score_name(name)} {percent(value)}" for name, value in run.scores.items())
    flag = "; COLLAPSED: it gives every text the same answer" if run.collapsed else ""
    steps = f"best at step {run.best_step:,} of {run.steps:,}"
    return f"seed {run.seed}: {scores}, {steps}, {duration(run.seconds)}{flag}"
