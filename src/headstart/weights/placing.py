"""Downloads move into the cache complete and verified, or not at all.

Each folder of the cache has a file `checked` with the sha256 of every file in it, which are compared when the folder is
used: the catalogue does not know those of every file, and nothing is asked of the Hub again.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from headstart.atomic import sha256_of, sync, sync_tree
from headstart.errors import DataError
from headstart.progress import Progress
from headstart.text.building import PREFIX, building, remove_stale

CHECKED = "checked"
"""In the format that `sha256sum --check` reads."""
POLL_SECONDS = 0.2
DISK_ERRORS = (errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EROFS, errno.EDQUOT)


@contextmanager
def writing_under(home: Path) -> Iterator[None]:
    """Report a full disk or a read-only folder as one sentence that names HEADSTART_HOME."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{home}: cannot be written ({error.strerror or error}). Make room there, or choose another folder with "
            "the environment variable HEADSTART_HOME."
        ) from error


@contextmanager
def scratch(home: Path) -> Iterator[Path]:
    """A temporary folder for a download in progress."""
    parent = home / "partial"
    parent.mkdir(parents=True, exist_ok=True)
    remove_stale(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def claimed(folder: Path) -> Generator[Progress, None, tuple[int, bool]]:
    """Make a folder for a download that can be gone on with, and wait until no other process is at work in it.

    Returns the open folder, which is this process's own until that is closed, and whether it had to wait.
    """
    has_waited = False
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who had it removes it at the end; then the lock is that of a folder which is no longer there.
            if os.path.samestat(os.fstat(opened), folder.stat()):
                return opened, has_waited
        except (BlockingIOError, FileNotFoundError):
            has_waited = True
        os.close(opened)
        yield Progress("waiting for another process that downloads it", 0, 0, "")
        time.sleep(POLL_SECONDS)


@contextmanager
def placing(target: Path, names: list[str]) -> Iterator[Path]:
    """A temporary folder to put verified files into; at the end they move to `target`, marked as checked."""
    with building(target) as folder:
        yield folder
        write_checked(folder, names)
        if target.is_dir():  # made by the user, with some of the files in it
            sync_tree(folder)
            for name in [*names, CHECKED]:
                os.replace(folder / name, target / name)
            sync(target)


def has_files(folder: Path, files: Mapping[str, str], *, verify: bool = True) -> bool:
    """Whether a folder has all files: name -> sha256, or "" where none is known. verify: compare them again.

    A file that has changed since it was checked is damaged: that is told, and it has to be downloaded anew. A wrong
    checksum of a file that was not checked before is an error: the user may have put it there, and it is not silently
    replaced.
    """
    if not all((folder / name).is_file() for name in files):
        return False
    noted = checked(folder, files)
    if noted is not None:
        wrong = wrong_file(folder, noted) if verify else None
        if wrong:
            logging.getLogger("headstart").warning(f"{folder}: {wrong}: it is damaged, and is downloaded anew.")
        return not wrong
    wrong = wrong_file(folder, files)
    if wrong:
        raise DataError(f"{folder}: {wrong}. Put the right file there, or remove it to have it downloaded.")
    with suppress(OSError):  # a shared cache may be read-only; its files are then verified on every use
        write_checked(folder, files)
    return True


def checked(folder: Path, files: Mapping[str, str]) -> dict[str, str] | None:
    """What was noted of these files; None if it is not of all, or against other checksums: the catalogue may change."""
    try:
        lines = (folder / CHECKED).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    noted = {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}
    if not all(name in noted and wanted in ("", noted[name]) for name, wanted in files.items()):
        return None
    return {name: noted[name] for name in files}


def wrong_file(folder: Path, files: Mapping[str, str]) -> str | None:
    """Which file has another checksum than it should, as a clause for an error message."""
    for name, wanted in files.items():
        if wanted and (found := sha256_of(folder / name)) != wanted:
            return f"{name} has the sha256 {found}, wanted {wanted}"
    return None


def write_checked(folder: Path, names: Iterable[str]) -> None:
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in names]
    replace_text(folder / CHECKED, "".join(lines))


def replace_text(path: Path, text: str) -> None:
    """Replace a file that another process may be reading. Raises OSError, unlike `atomic.write_text`."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    sync(new)
    os.replace(new, path)
    sync(path.parent)


def git_blob_of(path: Path) -> str:
    """Git's SHA-1 of a file, which is the checksum that the Hub has for small files."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
