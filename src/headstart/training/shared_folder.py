"""Whether several processes see one folder: the first one leaves a mark in it, and the others look for that."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headstart.atomic import PARTIAL

SIGHT_SECONDS = 10.0
"""A network file system may show a new file to other machines only after a while."""


@contextmanager
def marked(folder: Path) -> Iterator[Path]:
    """A new file in this folder, by which others can tell that they see the same one."""
    mark = folder.resolve() / f"{uuid.uuid4().hex}{PARTIAL}"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)


def is_seen(mark: Path) -> bool:
    """Whether the file is there, or comes within SIGHT_SECONDS."""
    deadline = time.monotonic() + SIGHT_SECONDS
    while not mark.is_file():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
