"""The command line: parse, call one public function, show, exit code. Nothing here imports torch."""

from __future__ import annotations

import sys

import typer

from headstart.cli import compare, demo, encode, fill, get, neighbours, predict, pretrain, transfer, weights
from headstart.cli.allocator import TRAINING, tune_allocator
from headstart.errors import HeadstartError

app = typer.Typer(
    name="headstart",
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
app.command("neighbours")(neighbours.neighbours)
app.command("demo")(demo.demo)


def run() -> None:
    """What a user caused is one sentence and exit code 2; anything else is our bug and keeps its traceback."""
    if TRAINING.intersection(sys.argv[1:2]):
        tune_allocator()
    try:
        app()
    except HeadstartError as error:
        print(f"headstart: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output is gone (as with `| head`); there is nobody to tell
        sys.exit(1)
