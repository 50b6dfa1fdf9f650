"""The checksums of a finished folder, in a file beside its files: damage is noticed when the folder is opened."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from headstart.atomic import ADVICE, PARTIAL, sha256_of, write_text
from headstart.errors import CheckpointError

SUMS = "headstart.sha256"
"""In the format that `sha256sum --check` reads."""
GROWING = ("state", "tensorboard", "lock")
"""Files and folders of a run that other processes, or the next one, may write to."""
TO_READ = ("CARD.md", "log.jsonl", "results.json", "results.csv", "mix.svg", "README.md")
"""Files for people. No model depends on them, so that a changed one is told and no error."""
LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def sums_of(folder: Path, without: Collection[str] = ()) -> list[str]:
    """A line for each file below a folder. without: files and folders in it that are left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = [(path, path.relative_to(folder)) for path in files]
    return [f"{sha256_of(path)}  {name.as_posix()}\n" for path, name in named if name.parts[0] not in without]


def write_sums(folder: Path, advice: str = ADVICE) -> None:
    """To be called when the other files are whole."""
    left_out = {path.name for path in folder.glob(f"*{PARTIAL}")}
    write_text(folder / SUMS, "".join(sums_of(folder, {SUMS, *GROWING, *left_out})), advice)


def remove_sums(folder: Path) -> None:
    """Before the files are changed."""
    (folder / SUMS).unlink(missing_ok=True)


def check_sums(
    folder: Path, *, made_anew: Collection[str] = (), foreign: bool = False, only: Collection[str] | None = None
) -> None:
    """Compare the files of a folder with their checksums, if it has any: earlier versions and other tools wrote none.

    made_anew: files that are not read, because the caller writes them again. foreign: other tools read and write the
    same format, so that a changed file is told, and no error. only: the files that are read, if not all.
    """
    if not (folder / SUMS).is_file():
        return
    for name, noted in read_sums(folder / SUMS).items():
        is_read = name not in TO_READ
        if name in made_anew or (only is not None and name not in only) or not (is_read or (folder / name).is_file()):
            continue
        wrong = difference(folder / name, noted)
        if wrong and is_read and not foreign:
            raise CheckpointError(f"{wrong} {ON_PURPOSE}")
        if wrong:
            logging.getLogger("headstart").warning(f"{wrong} {ON_PURPOSE}")


ON_PURPOSE = f"Put a whole copy in its place, or make it anew; if it was changed on purpose, remove {SUMS}."


def difference(path: Path, noted: str) -> str:
    """How a file differs from what was written, as a sentence; "" if it does not."""
    try:
        found = sha256_of(path)
    except OSError as error:
        return f"{path}: is listed in {SUMS} and cannot be read ({error.strerror})."
    return "" if found == noted else f"{path}: is not as it was written: its SHA-256 differs from that in {SUMS}."


def read_sums(path: Path) -> Mapping[str, str]:
    """Name -> SHA-256."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(path) from error
    found = [LINE.fullmatch(line) for line in lines]
    if not all(found):
        raise damaged(path)
    return {match[2]: match[1] for match in found if match}


def damaged(path: Path) -> CheckpointError:
    return CheckpointError(
        f"{path}: this file of checksums is damaged itself. If the files beside it are whole, remove it."
    )
