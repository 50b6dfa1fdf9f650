"""Downloads run as child processes, and their progress is the number of bytes on disk.

pip reports no progress to programs, and huggingface_hub only inside this process, where it cannot be stopped in the
middle of a file. Counting bytes works for both, and Ctrl-C ends a download at once.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from headstart.progress import Progress

POLL_SECONDS = 0.2
SECONDS_TO_END = 5.0  # after SIGTERM; then SIGKILL


class UnavailableError(Exception):
    """A source cannot provide the files; the message says why. Another source may."""


class SpoiltError(UnavailableError):
    """A download that cannot be gone on with, because what is there of it is not what was sent."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int
    out: str
    errors: str


def watched(
    command: Sequence[str], folder: Path, total: Callable[[], int], environment: Mapping[str, str]
) -> Generator[Progress, None, Ended]:
    """Run a command that downloads into `folder`. Closing the generator ends the process.

    total: how many bytes to expect, which may become known only during the download.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env={**os.environ, **environment}
        )
        try:
            while process.poll() is None:
                in_all = total()
                yield Progress("downloading", min(bytes_under(folder), in_all), in_all)
                wait_for(process, POLL_SECONDS)
        finally:
            end(process)
        return Ended(process.returncode, *(text_of(file) for file in (out, errors)))


def wait_for(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process ends in time."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        if not wait_for(process, SECONDS_TO_END):
            process.kill()
            process.wait()


def text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def bytes_under(folder: Path) -> int:
    found = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # the other process has just moved it
                continue
    return found
