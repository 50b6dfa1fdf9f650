"""`headstart get`: pretrained weights and labelled texts by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.weights import watched

if TYPE_CHECKING:
    from headstart.weights.catalogue import Entry

COLUMNS = 100


def get(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A name that --list shows, or hf:org/name[@revision].")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="Show what there is.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing but errors.")] = False,
) -> None:
    """Download weights or texts once, check them, and keep them in the cache (HEADSTART_HOME).

    Some weights come with the package: these are checked only.
    """
    from headstart.config import cache_home
    from headstart.errors import ConfigError
    from headstart.weights.fetching import check_package, fetch, find
    from headstart.weights.hub import PREFIX, fetch_hub

    home = cache_home()
    if list_all or name is None:
        if name is not None or not list_all:
            raise ConfigError("get takes either a NAME or --list, which shows the names.")
        show_list(home)
    elif name.startswith(PREFIX):
        say(quiet, watched(fetch_hub(name, home), quiet), use_of(name))
    else:
        entry = find(name)
        folder = watched(fetch(name, home), quiet)
        if entry.package is not None:
            check_package(entry, folder, verify=True)
            say(quiet, folder, f"It comes with the package. {use_of(name)}")
            return
        say(quiet, folder, texts_use_of(entry, folder) if entry.kind == "texts" else use_of(name))


def say(quiet: bool, folder: Path, use: str) -> None:
    if not quiet:
        typer.echo(folder)
        typer.echo(use)


def use_of(name: str) -> str:
    return f"Use it with: headstart transfer sentiment --from {name} --train FILE --out RUN"


def texts_use_of(entry: Entry, folder: Path) -> str:
    file = folder / next(iter(entry.files))
    return f"Use it with: headstart transfer sentiment --train {entry.name} --out RUN (the file is {file})"


def show_list(home: Path) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headstart.cli.progress_lines import size_text
    from headstart.weights.catalogue import catalogue

    table = Table(width=COLUMNS, box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("licence")
    table.add_column("where", no_wrap=True)
    for entry in sorted(catalogue().values(), key=lambda entry: entry.package is None):
        cells = (entry.name, entry.what, size_text(entry.size), entry.licence, where_text(entry, home))
        table.add_row(*(Text(cell) for cell in cells))
    Console(width=COLUMNS, highlight=False).print(table)


def where_text(entry: Entry, home: Path) -> str:
    """Whether it is in the package or the cache, or else where it would be downloaded from."""
    from headstart.errors import DataError
    from headstart.weights.catalogue import WheelSource
    from headstart.weights.fetching import is_here

    try:
        if is_here(entry.name, home, verify=False) is not None:
            return "here" if entry.package is None else "in the package"
    except DataError:
        return "here, but wrong"
    if not entry.sources:
        return "by hand"
    return ", ".join("pip" if isinstance(source, WheelSource) else "Hub" for source in entry.sources)
