"""Processes that encode one text: each takes the next stretch that no other has, the first one puts them together.

All of them read the whole text, which costs little beside encoding it, so that no text travels and each can tell which
lines a stretch has. A stretch goes into a shard, a folder in that of the unfinished file. The first process puts shards
behind the lines that are done as soon as they follow on them. So the folder is always what a process alone leaves, with
shards behind it, and any number of processes can go on.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import Table
from headstart.encoders.kernels.memory import release_freed_memory
from headstart.errors import CheckpointError
from headstart.inspection import stretches
from headstart.inspection.growing import reporting
from headstart.inspection.shards import RECORD, Shard, differing, read_record
from headstart.inspection.stretches import Rows
from headstart.inspection.unfinished import Unfinished
from headstart.progress import Notice, Progress
from headstart.training import shared_folder
from headstart.training.coordination import POLL_SECONDS, awaited
from headstart.training.ranks import Ranks
from headstart.training.shared_folder import is_seen, marked

STRETCHES_BETWEEN_TRIMS = 32


@dataclass(frozen=True, slots=True)
class Sharing:
    """The processes that encode one text, and where they tell each other about it. out: as all of them were given."""

    ranks: Ranks
    out: Path

    @property
    def begun(self) -> str:
        return f"{self.out}/begun"

    @property
    def done(self) -> str:
        return f"{self.out}/done"


class Stretches:
    """Those that this process encodes, each into a shard."""

    def __init__(self, folder: Path, settings: Table, ranks: Ranks, mark: Path | None) -> None:
        """mark: by which others see the folder; its name is that of this attempt, too."""
        self.folder, self.settings, self.ranks, self.mark = folder, settings, ranks, mark

    def key(self, first: int) -> str:
        """The name that processes have for the stretch that begins with this line."""
        return f"{self.mark}/{first}"

    def claim(self, first: int) -> bool:
        """Whether a stretch is for this process."""
        return self.ranks.claim(self.key(first))

    @contextmanager
    def place(self, first: int, rows: Rows) -> Iterator[Shard]:
        """Where the next stretch belongs; it counts at the end."""
        shard = Shard(self.folder / f"{first}-{uuid.uuid4().hex}", self.settings)
        try:
            with reporting(shard.folder):
                shard.folder.mkdir()
            shard.open()
            yield shard
            shard.reach(rows.digest)
            shard.save()
        except BaseException:
            shutil.rmtree(shard.folder, ignore_errors=True)
            raise
        finally:
            shard.close()
        self.ranks.publish(self.key(first), shard.folder.name)

    def passed(self, first: int, rows: Rows) -> None:
        """Another process has this stretch, which was read here, too."""


@dataclass(frozen=True, slots=True)
class Read:
    """A stretch that the first process has read and is to find in a shard. digest: of the text up to its end."""

    first: int
    lines: int
    digest: str
    is_own: bool


class Gathering(Stretches):
    """For the first process: its stretches and the shards of all, one behind the other."""

    def __init__(self, part: Unfinished, ranks: Ranks, mark: Path | None) -> None:
        super().__init__(part.folder, part.settings, ranks, mark)
        self.part = part
        self.left = shards_left(part)
        self.coming: deque[Read] = deque()
        self.elsewhere = 0
        """Lines of gathered shards that were not encoded here."""
        for first in self.left:
            super().claim(first)

    def claim(self, first: int) -> bool:
        return first not in self.left and super().claim(first)

    @contextmanager
    def place(self, first: int, rows: Rows) -> Iterator[Shard]:
        if not self.coming:
            yield self.part
            self.part.pause(rows.digest)
            return
        with super().place(first, rows) as shard:
            yield shard
        self.coming.append(Read(first, rows.read - first, rows.digest, is_own=True))
        self.gather()

    def passed(self, first: int, rows: Rows) -> None:
        self.coming.append(Read(first, rows.read - first, rows.digest, is_own=False))
        self.gather()

    def gather(self) -> None:
        """Put shards behind what is done, as far as they are there."""
        while self.coming and (shard := self.finished(self.coming[0].first)) is not None:
            read = self.coming.popleft()
            if (shard.reached.lines, shard.reached.digest) != (read.lines, read.digest):
                raise CheckpointError(
                    f"{self.folder}: lines {read.first + 1:,} to {read.first + read.lines:,} of the text are not those "
                    "that were encoded. Give the text as it was, the same to all processes, or remove that folder to "
                    "begin anew."
                )
            self.part.take(shard)
            self.elsewhere += 0 if read.is_own else read.lines

    def finished(self, first: int) -> Shard | None:
        """The shard of a stretch, if it is there already."""
        if first in self.left:
            return self.left.pop(first)
        name = self.ranks.published(self.key(first))
        if name is None:
            return None
        folder = self.folder / name
        if not is_seen(folder / RECORD):
            raise CheckpointError(f"{folder}: {UNSEEN}")
        return Shard(folder, self.settings, read_record(folder, self.settings))


UNSEEN = (
    "is not there for all processes. They all write into the folder beside --out: give one on a file system that all "
    "machines share."
)


def shards_left(part: Unfinished) -> dict[int, Shard]:
    """What an earlier run has encoded behind the lines that are done, by first line; all else is removed."""
    found: dict[int, Shard] = {}
    for folder in sorted(path for path in part.folder.iterdir() if path.is_dir()):
        number = folder.name.partition("-")[0]
        first = int(number) if number.isdecimal() else -1
        ahead = first - part.reached.lines
        with suppress(CheckpointError):
            reached = read_record(folder, part.settings)
            # A stretch that is not full ended with the text, which may have grown since.
            if ahead >= 0 and ahead % stretches.STRETCH == 0 and reached.lines == stretches.STRETCH:
                found.setdefault(first, Shard(folder, part.settings, reached))
        if first not in found or found[first].folder != folder:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def encode_stretches(rows: Rows, mine: Stretches) -> Iterator[int]:
    """Encode what no other process does, up to the end of the text; yields how many lines were encoded."""
    number = 0
    while not rows.at_end():
        first = rows.read
        if not mine.claim(first):
            rows.pass_over(stretches.STRETCH)
            mine.passed(first, rows)
            yield 0
            continue
        with mine.place(first, rows) as shard:
            yield from rows.encode_into(shard)
        number += 1
        if number % STRETCHES_BETWEEN_TRIMS == 0:
            release_freed_memory()


@contextmanager
def begun(sharing: Sharing, part: Unfinished) -> Iterator[Gathering]:
    """For the first process: from here on until its file is made the others can help."""
    with marked(part.folder) if sharing.ranks.launch.world > 1 else nullcontext() as mark:
        gathering = Gathering(part, sharing.ranks, mark)
        if mark is not None:
            told = {"mark": str(mark), "lines": part.reached.lines, "settings": part.settings}
            sharing.ranks.publish(sharing.begun, told)
        yield gathering


def lead_encoding(gathering: Gathering, rows: Rows) -> Generator[Progress | Notice, None, None]:
    """The part of the first process, or of one alone: all lines that are still to come are in the folder at the end."""
    part = gathering.part
    before = part.reached.lines
    rows.pass_over(before)
    part.check_text(rows.read, rows.digest)
    if before:
        yield Notice(f"Going on after line {before:,}, where this was stopped.")

    def encoding() -> Progress:
        # Of what is left to do, so that the pace and the time left are those of this run.
        done = encoded + gathering.elsewhere
        return Progress("encoding", done, max(0, rows.lines.expected() - before), "texts")

    encoded = 0
    for lines in encode_stretches(rows, gathering):
        encoded += lines
        yield encoding()
    while gathering.coming:
        time.sleep(POLL_SECONDS)
        gathering.gather()
        yield encoding()


def wait_for_first(sharing: Sharing) -> Generator[Progress, None, Any]:
    """What it says of the text, or of the finished file if that was there already; None if it ends before."""
    return (yield from awaited(sharing.ranks, sharing.begun, sharing.done))


def can_help(sharing: Sharing, mark: Path) -> Generator[Progress, None, bool]:
    """Whether this process sees the folder; False if the file was finished before this process had started."""
    deadline = time.monotonic() + shared_folder.SIGHT_SECONDS
    while not mark.is_file():
        if sharing.ranks.published(sharing.done) is not None:
            return False
        if time.monotonic() > deadline:
            raise CheckpointError(f"{mark.parent}: {UNSEEN}")
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(POLL_SECONDS)
    return True


def help_encoding(sharing: Sharing, rows: Rows, settings: Table) -> Generator[Progress, None, None]:
    """The part of any other process; returns when the first one has finished, or was stopped."""
    told = yield from wait_for_first(sharing)
    if told is None or "mark" not in told:
        return
    mark = Path(told["mark"])
    if not (yield from can_help(sharing, mark)):
        return
    different = differing(told["settings"], settings)
    if different is not None:
        raise CheckpointError(
            f"The {different} of this process is not that of the first one. Start all of them with the same command "
            "and the same files."
        )
    rows.pass_over(told["lines"])
    for lines in encode_stretches(rows, Stretches(mark.parent, settings, sharing.ranks, mark)):
        yield Progress("encoding", lines, 0, "texts")
    yield from awaited(sharing.ranks, sharing.done)
