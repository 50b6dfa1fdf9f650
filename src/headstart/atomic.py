"""Atomic writes (temporary file, fsync, rename, fsync of the folder), locks between processes, and checksums."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headstart.errors import CheckpointError

PARTIAL = ".partial"
ADVICE = "Files saved before are intact. Make room there, or choose another place."


def write_atomically(
    path: Path, write: Callable[[Path], None], failure: type[Exception] = OSError, advice: str = ADVICE
) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it. If anything fails, `path` is unchanged.

    failure: the exception that `write` raises besides OSError when the disk is full. advice: the last sentence of the
    error message, what the user can do.
    """
    # Two threads, or two processes, may write the same file: each needs a temporary name of its own.
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{PARTIAL}")
    try:
        make_folder(path.parent)
        partial.touch()
        mode = partial.stat().st_mode
        write(partial)
        partial.chmod(mode)  # safetensors makes its files private; whether a file is, the user's umask decides
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)
    except (OSError, failure) as error:
        with suppress(OSError):  # report the first error, not that of cleaning up
            partial.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{path}: cannot be written ({reason}). {advice}") from error


CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF)
"""What file systems answer, some of them over a network, that do not sync folders; and a folder that is not read."""


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk.

    A renamed file is under its new name after a power loss only if its folder was synced, too.
    """
    is_folder = path.is_dir()
    try:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        if not (is_folder and error.errno in CANNOT_SYNC):
            raise


def sync_tree(folder: Path) -> None:
    """Everything in a folder. What is on the disk already costs next to nothing."""
    for path in folder.rglob("*"):
        if path.is_dir() or path.is_file():
            sync(path)
    sync(folder)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, so that they are there after a power loss."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        for folder in reversed(missing):
            sync(folder.parent)
    except OSError:
        for folder in missing:
            with suppress(OSError):  # another process may use it already
                folder.rmdir()
        raise


def write_text(path: Path, text: str, advice: str = ADVICE) -> None:
    """Write UTF-8. Lone surrogates, which UTF-8 cannot encode, become question marks."""

    def write(partial: Path) -> None:
        partial.write_bytes(text.encode("utf-8", "replace"))

    write_atomically(path, write, advice=advice)


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file; the system gives it free when the process ends. busy: the error if another process holds it."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CheckpointError(busy) from error
        yield


@contextmanager
def taking_turns(path: Path) -> Iterator[None]:
    """Hold a lock file, once the process that holds it has let it go."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
