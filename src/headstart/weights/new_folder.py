"""The folder of an export: new or empty before, and complete afterwards or not written at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headstart.checksums import write_sums
from headstart.errors import CheckpointError, DataError
from headstart.text.building import OUT_ADVICE, building


def check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder}: is already there and not an empty folder. {OUT_ADVICE}")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder for the files, renamed to `folder` at the end, with their checksums. Errors name `folder`."""
    folder = folder.resolve()
    check_free(folder)
    try:
        with building(folder, OUT_ADVICE) as unfinished:
            yield unfinished
            write_sums(unfinished, OUT_ADVICE)
    except (OSError, DataError) as error:
        cause = error.__cause__ if isinstance(error, DataError) else error
        reason = getattr(cause, "strerror", None) or cause
        raise CheckpointError(f"{folder}: cannot be written ({reason}). {OUT_ADVICE}") from error
