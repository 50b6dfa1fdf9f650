"""Folders that appear complete or not at all: built under a temporary name, then renamed."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headstart.errors import DataError

PREFIX = ".building-"
STALE_SECONDS = 24 * 60 * 60


def cache_key(**parts: Any) -> str:
    """SHA-256 of everything that a cache entry depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


CACHE_ADVICE = "Choose another place with the environment variable HEADSTART_HOME."
OUT_ADVICE = "Give another --out."


@contextmanager
def building(target: Path, advice: str = CACHE_ADVICE) -> Iterator[Path]:
    """A temporary folder beside `target`; renamed to it at the end, or removed on an error.

    If another process finished the same entry first, that one is kept.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_stale(target.parent)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    except OSError as error:
        raise DataError(f"{target.parent}: this folder cannot be written ({error.strerror}). {advice}") from error
    try:
        yield folder
        folder.chmod(0o755)  # mkdtemp makes folders private, but a cache may be shared
        try:
            folder.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_stale(parent: Path) -> None:
    """Remove folders left by killed processes. A running one touches its folder regularly."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            stale = time.time() - folder.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:  # its builder has just finished
            continue
        if stale:
            shutil.rmtree(folder, ignore_errors=True)
