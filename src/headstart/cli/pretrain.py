"""`headstart pretrain static|elmo|bert`: flags to settings, then one call, with its progress shown."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Vectors = Annotated[
    str | None,
    typer.Option("--vectors", metavar="SRC", help="Word vectors to start from: a run, a file or a catalogue name."),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="SRC", help="Go on from these weights, with their tokenizer: a run, or others'."),
]
STOPPED = 130
"""What a shell reports for a process ended by Ctrl-C."""
STATIC_METHODS = ("skipgram", "cbow", "glove")

app = typer.Typer(
    help="Learn an encoder from unlabelled text: word vectors, ELMo or BERT.",
    no_args_is_help=True,
)


def common_options(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="Files, folders or globs of .txt, .jsonl, .csv, .tsv, .parquet, each also .gz. "
            "Not needed with --resume.",
            show_default=False,
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the run.")],
    valid: Annotated[
        list[str] | None,
        typer.Option("--valid", metavar="TEXT", help="Held-out text; left out, one document in a hundred is held out."),
    ] = None,
    field: Annotated[str | None, typer.Option("--field", help="Column or key that holds the text.")] = None,
    one_per_line: Annotated[
        bool | None,
        typer.Option("--one-per-line/--no-one-per-line", help="In .txt, each line is a document. Default: it is seen."),
    ] = None,
    vocabulary_size: Annotated[
        int | None, typer.Option("--vocabulary-size", help="Words or pieces in the vocabulary.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Optimiser steps; repeatable and resumable to the bit.")
    ] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="Passes over the text.")] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Time for everything, such as 10m: ends on time.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Decides every random draw. Default: 0.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a stopped or killed run was.")] = False,
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE.toml", help="Settings from a file.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="One setting, such as encoder.layers=3; may be given often."),
    ] = None,
    shard: Annotated[
        bool,
        typer.Option(
            "--shard", help="Divide weights, gradients and optimiser among torchrun's processes (ELMo and BERT)."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but errors.")] = False,
) -> None:
    """The options that every objective takes. Only the signature is used."""


def command(function: Callable[..., None]) -> None:
    """Make `function(common, *own options)` a command that takes the common options beside its own."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = list(inspect.signature(common_options, eval_str=True).parameters.values())
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *shared)]

    @functools.wraps(function)
    def run(**values: Any) -> None:
        common = {parameter.name: values.pop(parameter.name) for parameter in shared}
        function(common, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command()(run)


@command
def static(
    common: dict[str, Any],
    method: Annotated[str | None, typer.Option("--method", help="skipgram, cbow or glove. Default: skipgram.")] = None,
    dim: Annotated[int | None, typer.Option("--dim", help="Width of the vectors. Default: 100.")] = None,
) -> None:
    """Word vectors: word2vec (skip-gram, CBOW) or GloVe."""
    from headstart.config import pick

    if method is not None:
        pick(dict.fromkeys(STATIC_METHODS), method, "method")
    run_and_show(method or "static", None, {"objective.dim": dim}, **common)


@command
def elmo(
    common: dict[str, Any],
    size: Annotated[str | None, typer.Option("--size", help="tiny, mini, small or original. Default: mini.")] = None,
    directions: Annotated[
        str | None, typer.Option("--directions", help="both, or forward: the plain left-to-right language model.")
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            "--tokens",
            help="A word's first vector: from a table of words, from its characters, or both, a table whose missing "
            "words are spelled. Default: both; characters for size original.",
        ),
    ] = None,
    tie: Annotated[bool, typer.Option("--tie", help="The softmax shares the table of words.")] = False,
    vectors: Vectors = None,
    start: From = None,
) -> None:
    """ELMo: a forward and a backward LSTM language model."""
    flags = {
        "encoder.directions": directions,
        "encoder.tokens": tokens,
        "objective.tie": tie or None,
        "vectors": vectors,
        "start": start,
    }
    run_and_show("elmo", size, flags, **common)


@command
def bert(
    common: dict[str, Any],
    size: Annotated[
        str | None, typer.Option("--size", help="tiny, mini, small, medium, base or large. Default: mini.")
    ] = None,
    mask_rate: Annotated[
        float | None,
        typer.Option("--mask-rate", help="Share of the pieces that are masked. Default: 0.15; tiny and mini: 0.2."),
    ] = None,
    whole_words: Annotated[bool, typer.Option("--whole-words", help="Mask whole words.")] = False,
    nsp: Annotated[
        bool | None,
        typer.Option("--nsp/--no-nsp", help="With next-sentence prediction or without. Default: from small on with."),
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option("--vocabulary", metavar="FILE", help="A vocab.txt or tokenizer.json to use instead of learning."),
    ] = None,
    vectors: Vectors = None,
    start: From = None,
    cased: Annotated[bool, typer.Option("--cased", help="Keep capitals and accents.")] = False,
) -> None:
    """BERT: a transformer that predicts masked pieces from both sides at every layer."""
    flags = {
        "objective.mask_rate": mask_rate,
        "objective.whole_words": whole_words or None,
        "objective.nsp": nsp,
        "tokenizer.path": vocabulary,
        "vectors": vectors,
        "start": start,
        "tokenizer.lowercase": False if cased else None,
    }
    run_and_show("bert", size, flags, **common)


def run_and_show(
    kind: str,
    size: str | None,
    flags: dict[str, Any],
    *,
    text: list[str] | None,
    out: Path,
    field: str | None,
    one_per_line: bool | None,
    vocabulary_size: int | None,
    settings: list[str] | None,
    quiet: bool,
    **arguments: Any,
) -> None:
    """Run it and show each event; the first Ctrl-C stops after the current step with a checkpoint saved."""
    from headstart.cli.allocator import return_large_blocks, tune_allocator
    from headstart.cli.progress_lines import display
    from headstart.cli.stopping import stop_requests
    from headstart.cli.weights import fetch_named
    from headstart.config import parse_assignment
    from headstart.pretraining.events import Joined, Planned
    from headstart.pretraining.pretrain import pretrain
    from headstart.progress import Notice
    from headstart.training.launch import launch_of
    from headstart.training.ranks import joined

    flags |= {"text.field": field, "text.one_per_line": one_per_line, "tokenizer.size": vocabulary_size}
    given = {key: value for key, value in flags.items() if value is not None}
    assigned = {".".join(keys): value for keys, value in map(parse_assignment, settings or [])}
    if arguments["shard"]:
        return_large_blocks()
    with joined(launch_of(os.environ)) as ranks:
        is_first = ranks.launch.is_first
        if is_first:
            fetch_named([given.get("start")], quiet)
        options = {"size": size, "settings": given | assigned, "ranks": ranks, **arguments}
        events = pretrain(kind, text or [], out=out, **options)
        with stop_requests() as stop, display(quiet or not is_first) as show:
            for event in events:
                show(event)
                if isinstance(event, Planned | Joined) and not arguments["shard"]:
                    tune_allocator()  # the text is read: from here on every step needs the same memory again
                if ranks.should_stop(stop.asked):
                    events.close()
                    how = f"headstart pretrain ... --out {out} --resume"
                    show(Notice(f"Stopped, with everything saved. Go on with: {how}"))
                    break
            else:
                return
    # torchrun would start processes again that end with an error, and a stop that was asked for is none.
    raise typer.Exit(0 if ranks.launch.joins else STOPPED)
