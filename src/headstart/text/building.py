"""Folders that appear complete or not at all: built under a temporary name, then renamed.

Entries of the cache also have the checksums of their files, so that a damaged one is noticed and made anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headstart.atomic import make_folder, sync, sync_tree, write_text
from headstart.checksums import sums_of
from headstart.errors import DataError

PREFIX = ".building-"
SEAL = "sealed"
"""In the format that `sha256sum --check` reads."""
STALE_SECONDS = 24 * 60 * 60


def cache_key(**parts: Any) -> str:
    """SHA-256 of everything that a cache entry depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


CACHE_ADVICE = "Choose another place with the environment variable HEADSTART_HOME."
OUT_ADVICE = "Give another --out."


@contextmanager
def building(target: Path, advice: str = CACHE_ADVICE, *, synced: bool = True) -> Iterator[Path]:
    """A temporary folder beside `target`; renamed to it at the end, or removed on an error.

    If another process finished the same entry first, that one is kept. synced: wait until all files are on the disk,
    so that a power loss leaves the whole folder or none.
    """
    try:
        make_folder(target.parent)
        remove_stale(target.parent)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    except OSError as error:
        raise DataError(f"{target.parent}: this folder cannot be written ({error.strerror}). {advice}") from error
    try:
        yield folder
        folder.chmod(0o755)  # mkdtemp makes folders private, but a cache may be shared
        if synced:
            sync_tree(folder)
        try:
            folder.rename(target)
            sync(target.parent)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def cache_entry(target: Path) -> Iterator[Path]:
    """`building`, with the checksums of all files at the end.

    The files, which may have gigabytes, are not waited for: the checksums are, and tell after a power loss which of
    them came to the disk.
    """
    with building(target, synced=False) as folder:
        yield folder
        write_text(folder / SEAL, "".join(sums_of(folder, {SEAL})), CACHE_ADVICE)


def is_whole(target: Path) -> bool:
    """Whether a cache entry is there with every file as it was made. A damaged one is told and removed.

    An entry of a version that wrote no checksums counts as whole.
    """
    if not (target / SEAL).is_file():
        return target.is_dir()
    noted = (target / SEAL).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    found = sums_of(target, {SEAL})
    if noted == found:
        return True
    wrong = next((line.split()[-1] for line in found if line not in noted), SEAL)
    logging.getLogger("headstart").warning(f"{target}: '{wrong}' is damaged; this part of the cache is made anew.")
    shutil.rmtree(target)
    return False


def remove_stale(parent: Path) -> None:
    """Remove folders left by killed processes. A running one touches its folder regularly."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            stale = time.time() - folder.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:  # its builder has just finished
            continue
        if stale:
            shutil.rmtree(folder, ignore_errors=True)
