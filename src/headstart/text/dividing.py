"""Jobs that several machines do together: each does its turns, and the results are exchanged in rounds.

Every machine reads all of the text, so that no text travels and every machine knows where each job begins: 20 MB are
read in 0.1 s and tokenised in 3 s. Results are in the order of the jobs, so that whatever is made of them is the same
bytes as on one machine. One process of a machine takes part, with workers on all its cores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, Protocol

from headstart.errors import HeadstartError, LostProcessError
from headstart.progress import Progress
from headstart.text.frames import Frame, read_frame, write_frame
from headstart.text.jobs import Job

Results = Generator[tuple[Job, Frame], None, None]
ROUND_CHARACTERS = 1 << 22
"""Of text between two exchanges, for all machines together: bounds memory. In shorter rounds they wait more often."""
MORE, LAST, LEFT = b"more", b"last", b"left"
"""What a machine says before each exchange: that it has done all its turns of a round, that the text has ended within
them, or that it has stopped."""


@dataclass(frozen=True, slots=True)
class Division:
    """Which machine does which job, and how they exchange results."""

    machine: int
    """This one."""
    turns: tuple[int, ...]
    """Job i is done by machine turns[i % len(turns)]; a machine with more cores has more turns."""
    receivers: frozenset[int]
    """The machines that need the results of all."""
    exchange: Callable[[bytes, Collection[int]], list[bytes]]
    """(bytes, receivers) -> in a receiver, what each machine gave. All machines call it in the same order."""
    left: Callable[[], HeadstartError]
    """The reason why another machine has stopped, to be raised."""


class Machines(Protocol):
    """Where work on text finds the other machines."""

    def begin(self, task: Mapping[str, Any]) -> Generator[Progress, None, Division | None]:
        """Have them take part in a task that JSON can hold; None where there are no others."""
        ...


def divided(
    run: Callable[[Iterable[Job]], Results], jobs: Iterator[Job], division: Division, characters: int
) -> Results:
    """All jobs and their results in order; on a machine that is not among the receivers, only its own.

    run: does jobs on this machine. characters: of a job. The texts of jobs that another machine does are not kept.
    """
    turns = len(division.turns)
    per_turn = max(1, ROUND_CHARACTERS // (characters * turns))
    share = per_turn * division.turns.count(division.machine)
    passed: deque[tuple[int, Job]] = deque()  # jobs that were read and not yet yielded, with their machines
    in_touch = True
    with closing(run(own_jobs(jobs, division, passed))) as results:
        try:
            ahead = [frame for _, frame in islice(results, share)]
            ended = False
            while not ended:
                in_touch = False
                ended, frames = exchanged(ahead, MORE if len(ahead) == share else LAST, division)
                in_touch = True
                ahead = []
                left = per_turn * turns
                while passed and left:
                    machine, job = passed.popleft()
                    left -= 1
                    # A result for each one passed on, rather than all of a round at its end: workers stay busy.
                    if machine == division.machine:
                        ahead += [frame for _, frame in islice(results, 1)]
                    if machine in frames:
                        yield job, next(frames[machine])
        except (GeneratorExit, HeadstartError):
            if in_touch:
                with suppress(LostProcessError):
                    division.exchange(LEFT, set(division.turns))
            raise


def own_jobs(jobs: Iterator[Job], division: Division, passed: deque[tuple[int, Job]]) -> Iterator[Job]:
    """This machine's jobs; all are noted in `passed`, without their texts."""
    for number, job in enumerate(jobs):
        machine = division.turns[number % len(division.turns)]
        passed.append((machine, Job([], job.starts, job.read)))
        if machine == division.machine:
            yield job


def exchanged(mine: list[Frame], status: bytes, division: Division) -> tuple[bool, dict[int, Iterator[Frame]]]:
    """Whether this round is the last, and the results of each machine that are seen on this one."""
    told = division.exchange(status, set(division.turns))
    if LEFT in told:
        raise division.left()
    packed = BytesIO()
    for frame in mine:
        write_frame(packed, frame)
    everyones = division.exchange(packed.getvalue(), division.receivers)
    frames = {machine: unpacked(content) for machine, content in enumerate(everyones)}
    return LAST in told, frames | {division.machine: iter(mine)}


def unpacked(content: bytes) -> Iterator[Frame]:
    stream = BytesIO(content)
    while (frame := read_frame(stream)) is not None:
        yield frame
