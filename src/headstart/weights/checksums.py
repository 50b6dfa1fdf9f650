"""Whether files are the ones that were meant, and a note in their folder that this was found out once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from headstart.atomic import sha256_of

CHECKED = "checked"
"""Lists the sha256 and name of each file, as `sha256sum --check` reads it."""


def git_blob_of(path: Path) -> str:
    """The name git gives to these contents, which is what the Hub states for small files."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def wrong_file(folder: Path, files: Mapping[str, str]) -> str | None:
    """The first file that is not what it should be, in words. Files without a known sha256 are taken as they are."""
    for name, wanted in files.items():
        if wanted and (found := sha256_of(folder / name)) != wanted:
            return f"{name} has the sha256 {found}, wanted {wanted}"
    return None


def write_checked(folder: Path, names: Iterable[str]) -> None:
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in names]
    replace_text(folder / CHECKED, "".join(lines))


def replace_text(path: Path, text: str) -> None:
    """A small file that others may be reading; an OSError is the caller's to put into words."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def is_checked(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether all files are there and were found right before. What is known of them may have changed since."""
    try:
        lines = (folder / CHECKED).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    noted = {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}
    return all(
        name in noted and wanted in ("", noted[name]) and (folder / name).is_file() for name, wanted in files.items()
    )
