"""The command line: parse, call one public function, show the result, set the exit code. Nothing here imports torch."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headstart.cli import (
    attend,
    compare,
    demo,
    encode,
    fill,
    get,
    layers,
    neighbours,
    next,
    predict,
    pretrain,
    probe,
    reproduce,
    score,
    senses,
    serve,
    similarity,
    transfer,
    weights,
)
from headstart.cli.allocator import TRAINING, tune_allocator
from headstart.cli.memory import check_limit, out_of_memory
from headstart.cli.refused_files import refused_file
from headstart.cli.together import leave, refuse_several, silent_unless
from headstart.errors import HeadstartError, LostProcessError
from headstart.training.launch import Launch, launch_of

# What a shell reports for a process ended by SIGINT and by SIGPIPE.
INTERRUPTED, BROKEN_PIPE = 130, 141


class Commands(TyperGroup):
    """Ctrl-C ends any command in one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a closed pipe is noticed here, while it can still be handled
            return result
        except KeyboardInterrupt:
            print("headstart: Stopped.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="headstart",
    cls=Commands,
    help="Pretrain word vectors, ELMo or BERT on your own text, and carry what they learned to your labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(pretrain.app, name="pretrain")
app.command("transfer")(transfer.transfer)
app.command("evaluate")(predict.evaluate)
app.command("predict")(predict.predict)
app.command("compare")(compare.compare)
app.command("get")(get.get)
app.command("import")(weights.import_)
app.command("export")(weights.export)
app.command("encode")(encode.encode)
app.command("fill")(fill.fill)
app.command("next")(next.next_words)
app.command("score")(score.score)
app.command("similarity")(similarity.similarity)
app.command("neighbours")(neighbours.neighbours)
app.command("senses")(senses.senses)
app.command("probe")(probe.probe)
app.command("layers")(layers.layers)
app.command("attend")(attend.attend)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)
app.command("serve")(serve.serve)


def show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"headstart {version('headstart')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


def run() -> None:
    """A mistake of the user's, too little memory, or a full disk is one sentence and exit code 2; anything else is a
    bug and keeps its traceback."""
    if TRAINING.intersection(sys.argv[1:2]):
        tune_allocator()
    launch = Launch()
    try:
        launch = launch_of(os.environ)
        with silent_unless(launch.is_first):
            refuse_several(launch, sys.argv[1:])
            check_limit(sys.argv[1:])
            app()
    except LostProcessError as error:
        if launch.is_first or launch.local_rank == 0:
            print(f"headstart: {error}", file=sys.stderr)
        leave(launch, 1)
    except HeadstartError as error:
        if launch.is_first:
            print(f"headstart: {error}", file=sys.stderr)
        leave(launch, 2)
    except (MemoryError, RuntimeError, OSError, ImportError) as error:
        sentence = out_of_memory(error, sys.argv[1:]) or refused_file(error)
        if sentence is None:
            raise
        print(f"headstart: {sentence}", file=sys.stderr)
        leave(launch, 2)
    except SystemExit as end:
        # The reader of our output has left, as with `| head`: typer and rich end silently, but with 1.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(BROKEN_PIPE)
        leave(launch, end.code)
