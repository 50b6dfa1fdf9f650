"""Writing that either happened or did not: a temporary name, flushed to the disk, then renamed; and checksums."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headstart.errors import CheckpointError

PARTIAL = ".partial"


def write_atomically(path: Path, write: Callable[[Path], None], failure: type[Exception] = OSError) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place. A failure leaves `path` as it was.

    The temporary name is this thread's own. `failure`: what `write` raises besides OSError when the disk is full.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except (OSError, failure) as error:
        with suppress(OSError):  # the first error is the one to tell
            partial.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}). What was saved before is "
            f"intact; make room there or choose another place, and a run goes on with --resume."
        ) from error


def write_text(path: Path, text: str) -> None:
    """UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes a question mark."""

    def write(partial: Path) -> None:
        partial.write_bytes(text.encode("utf-8", "replace"))

    write_atomically(path, write)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
