"""`headstart pretrain static|elmo|bert`: flags to settings, then one call, watched by a display."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

STATIC_METHODS = ("skipgram", "cbow", "glove")

app = typer.Typer(
    help="Learn an encoder from unlabelled text: word vectors, ELMo or BERT.",
    no_args_is_help=True,
)

Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT...",
        help="Files, folders or globs of .txt, .jsonl, .csv, .tsv, .parquet, each also .gz. Not needed with --resume.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="RUN", help="Folder for the run.")]
Valid = Annotated[
    list[str] | None,
    typer.Option("--valid", metavar="TEXT", help="Held-out text; left out, one document in a hundred is held out."),
]
Steps = Annotated[int | None, typer.Option("--steps", help="Optimiser steps; repeatable and resumable to the bit.")]
Epochs = Annotated[float | None, typer.Option("--epochs", help="Passes over the text.")]
Budget = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Time for everything, such as 10m: ends on time.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Decides every random draw.  [default: 0]")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a stopped or killed run was.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE.toml", help="Settings from a file.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="One setting, such as encoder.layers=3; may be given often."),
]
Field = Annotated[str | None, typer.Option("--field", help="Column or key that holds the text.")]
OnePerLine = Annotated[bool, typer.Option("--one-per-line", help="In .txt, each line is a document.")]
Vocabulary = Annotated[int | None, typer.Option("--vocabulary-size", help="Words or pieces in the vocabulary.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show nothing but errors.")]


@app.command()
def static(
    out: Out,
    text: Text = None,
    method: Annotated[
        str | None, typer.Option("--method", help="skipgram, cbow or glove.  [default: skipgram]")
    ] = None,
    dim: Annotated[int | None, typer.Option("--dim", help="Width of the vectors.  [default: 100]")] = None,
    vocabulary_size: Vocabulary = None,
    valid: Valid = None,
    field: Field = None,
    one_per_line: OnePerLine = False,
    steps: Steps = None,
    epochs: Epochs = None,
    budget: Budget = None,
    seed: Seed = None,
    resume: Resume = False,
    config: Config = None,
    settings: Set = None,
    quiet: Quiet = False,
) -> None:
    """Word vectors: word2vec (skip-gram, CBOW) or GloVe."""
    from headstart.config import pick

    if method is not None:
        pick(dict.fromkeys(STATIC_METHODS), method, "method")
    flags = {"objective.dim": dim, "tokenizer.size": vocabulary_size, **text_flags(field, one_per_line)}
    watch(
        method or "static",
        text,
        flags,
        settings,
        quiet,
        out=out,
        valid=valid,
        size=None,
        config=config,
        steps=steps,
        epochs=epochs,
        budget=budget,
        seed=seed,
        resume=resume,
    )


@app.command()
def elmo(
    out: Out,
    text: Text = None,
    size: Annotated[str | None, typer.Option("--size", help="tiny, mini, small or original.  [default: mini]")] = None,
    directions: Annotated[
        str | None, typer.Option("--directions", help="both, or forward: the plain left-to-right language model.")
    ] = None,
    vocabulary_size: Vocabulary = None,
    valid: Valid = None,
    field: Field = None,
    one_per_line: OnePerLine = False,
    steps: Steps = None,
    epochs: Epochs = None,
    budget: Budget = None,
    seed: Seed = None,
    resume: Resume = False,
    config: Config = None,
    settings: Set = None,
    quiet: Quiet = False,
) -> None:
    """ELMo: a forward and a backward LSTM language model over characters."""
    flags = {"encoder.directions": directions, "tokenizer.size": vocabulary_size, **text_flags(field, one_per_line)}
    watch(
        "elmo",
        text,
        flags,
        settings,
        quiet,
        out=out,
        valid=valid,
        size=size,
        config=config,
        steps=steps,
        epochs=epochs,
        budget=budget,
        seed=seed,
        resume=resume,
    )


@app.command()
def bert(
    out: Out,
    text: Text = None,
    size: Annotated[
        str | None, typer.Option("--size", help="tiny, mini, small, medium, base or large.  [default: mini]")
    ] = None,
    mask_rate: Annotated[
        float | None, typer.Option("--mask-rate", help="Share of the pieces that are hidden.  [default: 0.15]")
    ] = None,
    whole_words: Annotated[bool, typer.Option("--whole-words", help="Hide whole words.")] = False,
    no_nsp: Annotated[bool, typer.Option("--no-nsp", help="Without next-sentence prediction.")] = False,
    vocabulary: Annotated[
        str | None,
        typer.Option("--vocabulary", metavar="FILE", help="A vocab.txt or tokenizer.json to use instead of learning."),
    ] = None,
    cased: Annotated[bool, typer.Option("--cased", help="Keep capitals and accents.")] = False,
    vocabulary_size: Vocabulary = None,
    valid: Valid = None,
    field: Field = None,
    one_per_line: OnePerLine = False,
    steps: Steps = None,
    epochs: Epochs = None,
    budget: Budget = None,
    seed: Seed = None,
    resume: Resume = False,
    config: Config = None,
    settings: Set = None,
    quiet: Quiet = False,
) -> None:
    """BERT: a transformer that restores hidden pieces, aware of both sides at every layer."""
    flags = {
        "objective.mask_rate": mask_rate,
        "objective.whole_words": whole_words or None,
        "objective.nsp": False if no_nsp else None,
        "tokenizer.path": vocabulary,
        "tokenizer.lowercase": False if cased else None,
        "tokenizer.size": vocabulary_size,
        **text_flags(field, one_per_line),
    }
    watch(
        "bert",
        text,
        flags,
        settings,
        quiet,
        out=out,
        valid=valid,
        size=size,
        config=config,
        steps=steps,
        epochs=epochs,
        budget=budget,
        seed=seed,
        resume=resume,
    )


def text_flags(field: str | None, one_per_line: bool) -> dict[str, Any]:
    return {"text.field": field, "text.one_per_line": one_per_line or None}


def watch(
    kind: str,
    text: list[str] | None,
    flags: dict[str, Any],
    settings: list[str] | None,
    quiet: bool,
    **arguments: Any,
) -> None:
    """Run it, showing each event; the first Ctrl-C stops after the step at hand with everything saved."""
    from headstart.cli.display import display
    from headstart.config import parse_assignment
    from headstart.pretrain import pretrain

    given = {key: value for key, value in flags.items() if value is not None}
    assigned = {".".join(keys): value for keys, value in map(parse_assignment, settings or [])}
    events = pretrain(kind, text or [], settings=given | assigned, **arguments)
    with stop_requests() as stop, display(quiet) as show:
        for event in events:
            show(event)
            if stop.asked:
                events.close()
                raise typer.Exit(130)


class StopRequest:
    """Ctrl-C (or SIGTERM) once asks for a stop between two steps; twice interrupts at once."""

    asked = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    request = StopRequest()
    before = {number: signal.signal(number, request.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
