"""`headstart serve SRC|RUN...`: models behind an HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.options import Among, Quiet
from headstart.cli.weights import watched


def serve(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SRC|RUN...", help="Encoders, and runs of `headstart transfer`, to be served."),
    ],
    host: Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 for any that is free.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="HEADSTART_TOKEN", help="What every request to the API has to bring."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A further name by which the server may be called."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="DIR", help="Folder of trainings and comparisons to show in the explorer."),
    ] = None,
    among: Among = None,
    words: Annotated[int, typer.Option("--words", help="How much of TEXT is indexed for each encoder.")] = 200_000,
    precision: Annotated[
        str, typer.Option("--precision", help="float32, or int8 (BERT: faster, rounded).")
    ] = "float32",
    quiet: Quiet = False,
) -> None:
    """Answer requests over HTTP until stopped: vectors, neighbours, hidden words, and the answers of task models."""
    from headstart.errors import ConfigError

    try:
        from headstart.serving.app import LOOPBACK, build_app
        from headstart.serving.guard import Rules
        from headstart.serving.server import Address, listen, run
    except ModuleNotFoundError as error:
        raise ConfigError(f"A server needs the package '{error.name}': pip install 'headstart[serve]'.") from error
    from headstart.serving.limits import Limits
    from headstart.serving.models import open_models
    from headstart.serving.occurrences import with_indexes

    if token == "":
        raise ConfigError("--token has no characters; leave it out, or give one.")
    bound, address = listen(Address(host, port))
    with bound:
        models = watched(open_models(sources, precision), quiet)
        models = watched(with_indexes(models, among or (), words), quiet)
        hosts = frozenset((*LOOPBACK, address.name.lower(), *map(str.lower, allow_host or ())))
        rules = Rules(hosts, Limits(), token)
        app = build_app(models, rules, runs=runs)
        if not quiet:
            names = ", ".join(one.name for one in models)
            typer.echo(f"{names}: served at {address}/api/models; Ctrl-C stops.", err=True)
        run(app, bound)
