"""Folders of downloads appear whole and checked, or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headstart.errors import DataError
from headstart.text.building import PREFIX, building, remove_stale
from headstart.weights.checksums import CHECKED, write_checked

DISK_ERRORS = (errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT)


@contextmanager
def writing_under(home: Path) -> Iterator[None]:
    """A full disk or a closed folder becomes one sentence that names HEADSTART_HOME."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{home}: cannot be written ({error.strerror or error}). Make room there, or choose another folder with "
            "the environment variable HEADSTART_HOME."
        ) from error


@contextmanager
def scratch(home: Path) -> Iterator[Path]:
    """A folder for what is on its way; gone afterwards."""
    parent = home / "partial"
    parent.mkdir(parents=True, exist_ok=True)
    remove_stale(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def placing(target: Path, names: list[str]) -> Iterator[Path]:
    """A folder to put these files into; at the end they stand in `target` with the note that they were checked."""
    with building(target) as folder:
        yield folder
        write_checked(folder, names)
        if target.is_dir():  # somebody made it, and put some of the files there
            for name in [*names, CHECKED]:
                os.replace(folder / name, target / name)
