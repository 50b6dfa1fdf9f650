"""`headstart transfer`: options to one call, whose progress is shown; the scores go to stdout."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.options import (
    LABELLED,
    Longest,
    Memory,
    Quiet,
    Settings,
    Stride,
    Task,
    input_settings,
    reader_options,
    settings_given,
)

if TYPE_CHECKING:
    from headstart.report.results import Run
    from headstart.training.ranks import Ranks
    from headstart.transfer.transfer import TransferEvent, Transferred

STOPPED = 130
"""What a shell reports for a process ended by Ctrl-C."""


@reader_options(LABELLED)
def transfer(
    task: Task,
    *,
    train: Annotated[
        Path,
        typer.Option(
            "--train",
            metavar="F",
            help="Labelled examples: .csv .tsv .jsonl .parquet, SST, aclImdb, CoNLL, SNLI, SQuAD; or a name.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the model.")],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SRC",
            help="scratch, a run, minilm, or other people's weights; a+b puts several side by side.",
        ),
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
    longest: Longest = None,
    stride: Stride = None,
    memory: Memory = None,
    settings: Settings = None,
    quiet: Quiet = False,
    reading: dict[str, Any],
) -> None:
    """Carry a pretrained encoder over to a labelled task: frozen features, or fine-tuning."""
    from headstart.cli.weights import fetch_named
    from headstart.tasks import task_class
    from headstart.training.launch import launch_of
    from headstart.training.ranks import joined
    from headstart.transfer.transfer import transfer as run_transfer

    flags = {
        "longest": longest,
        "stride": stride,
        "mix.kind": mix,
        "mix.place": mix_place,
        "mix.pull": mix_pull,
        "mix.norm": mix_norm or None,
        "network.cell": cell,
        "network.directions": directions,
        "network.pool": pool,
        "network.memory": memory,
    }
    with joined(launch_of(os.environ)) as ranks:
        if ranks.launch.is_first:
            fetch_named([source, train, dev], quiet)
        events = run_transfer(
            task,
            source=source,
            how=how,
            train=train,
            dev=dev,
            out=out,
            labels=labels,
            seeds=seeds,
            examples=input_settings(task_class(task), reading),
            settings=settings_given(flags, settings),
            held_out=held_out,
            ranks=ranks,
        )
        done = watch_transfer(events, quiet or not ranks.launch.is_first, ranks)
    if done is not None:
        typer.echo(transferred_text(done))
    elif not ranks.launch.joins:
        raise typer.Exit(STOPPED)


def watch_transfer(events: Generator[TransferEvent, None, None], quiet: bool, ranks: Ranks) -> Transferred | None:
    """Show each event. None if Ctrl-C ended it, and in any process but the first."""
    from headstart.cli.progress_lines import display
    from headstart.cli.stopping import stop_requests
    from headstart.progress import Notice
    from headstart.transfer.transfer import Transferred

    last = None
    with stop_requests(ranks if ranks.launch.world > 1 else None) as stop, display(quiet) as show:
        for event in events:
            show(event)
            if stop.is_due():
                events.close()
                show(Notice("Stopped. A transfer leaves nothing behind before it is finished."))
                return None
            last = event
    return last if isinstance(last, Transferred) else None


def transferred_text(done: Transferred) -> str:
    from headstart.tasks import task_class
    from headstart.transfer.card import forgetting_text, learned, mix_text, score_text

    results, task = done.results, task_class(done.results.task)
    lines = [run_line(run, task.one) for run in results.runs]
    lines.append(f"{results.source}, {results.how}, {results.labels:,} labelled examples: dev {score_text(results)}")
    lines += [f"layer weights at the {place}: {mix_text(mix)}" for place, mix in learned(results.mix).items()]
    if results.forgetting is not None:
        lines.append(f"forgetting: {forgetting_text(results.forgetting)}")
    if results.truncated:
        lines.append(task.cut_note(results.truncated, done.together))
    return "\n".join([*lines, f"{done.out}: the model of seed {results.best_seed}; see {done.out / 'CARD.md'}"])


def run_line(run: Run, one: str) -> str:
    """one: what an example of the task is called."""
    from headstart.report.wording import duration, percent, score_name

    scores = ", ".join(f"{score_name(name)} {percent(value)}" for name, value in run.scores.items())
    flag = f"; COLLAPSED: it gives every {one} the same answer" if run.collapsed else ""
    steps = f"best at step {run.best_step:,} of {run.steps:,}"
    return f"seed {run.seed}: {scores}, {steps}, {duration(run.seconds)}{flag}"
