"""Machines that prepare a text together: the first process says what is to be done, and the others help.

A task is told through the launcher's key-value store, and each machine answers when it has found the same text. Only
then do they meet in the exchanges of `text.dividing`, in which nobody can be polled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from headstart.errors import DataError, HeadstartError, LostProcessError
from headstart.pretraining.base import Workplace
from headstart.progress import Progress
from headstart.text.building import cache_entry, is_whole
from headstart.text.counting import count_files
from headstart.text.dividing import Division, Results
from headstart.text.documents import TextConfig, content_key, discover
from headstart.text.jobs import TOKENISE
from headstart.text.tokenise import make_shards, stages_of, tokenise_files
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.coordination import POLL_SECONDS, raise_refusal
from headstart.training.ranks import Ranks

EXPLAINING_SECONDS = 60.0
"""For a process that has stopped with an error to say which one."""


@dataclass(slots=True)
class OtherMachines:
    """For the first process: the machines that work on its text with it."""

    ranks: Ranks
    workers: int
    sources: list[str]
    valid: list[str] | None
    begun: int = field(default=0, init=False)

    def begin(self, task: Mapping[str, Any]) -> Generator[Progress, None, Division | None]:
        machines = self.ranks.launch.machines
        if machines == 1:
            return None
        number, self.begun = self.begun, self.begun + 1
        texts = {"sources": self.sources, "valid": self.valid, "content": contents(self.sources, self.valid)}
        self.ranks.publish(task_key(number), {**task, **texts})
        places = [{"rank": 0, "workers": self.workers, "receives": True}]
        while len(places) < machines:
            place = self.ranks.published(answer_key(number, len(places)))
            if place is not None:
                places.append(place)
                continue
            raise_refusal(self.ranks)
            yield Progress("waiting for the other machines", len(places) - 1, machines - 1, "machines")
            time.sleep(POLL_SECONDS)
        self.ranks.publish(places_key(number), places)
        return division_of(places, 0, self.ranks)


def help_with_task(number: int, task: Mapping[str, Any], place: Workplace) -> Generator[Progress, None, None]:
    """For the first process of another machine: its part of a task. Returns early if the first process ends before."""
    ranks = place.ranks
    paths = discover(task["sources"])
    valid_paths = None if task["valid"] is None else discover(task["valid"])
    if contents(task["sources"], task["valid"]) != task["content"]:
        raise DataError(
            f"{task['sources'][0]}: the text on this machine is not that of the first process. Give all machines the "
            "same files."
        )
    shards = place.cache / "shards"
    # The folder that the first process builds is seen here if the cache is shared.
    lacks_shards = task["work"] == TOKENISE and not (shards / task["folder"]).is_dir()
    writes = lacks_shards and not is_whole(shards / task["shards"])
    mine = {"rank": ranks.launch.rank, "workers": place.workers, "receives": writes}
    ranks.publish(answer_key(number, ranks.launch.machine), mine)
    while (places := ranks.published(places_key(number))) is None:
        if ranks.ended():
            return
        yield Progress("waiting for the other machines", 0, 0, "machines")
        time.sleep(POLL_SECONDS)
    division = division_of(places, ranks.launch.machine, ranks)
    if not writes:
        for results in parts_of(task, paths, valid_paths, place.workers, division):
            with closing(results):
                for job, _ in results:
                    yield Progress(task["work"], job.read, 0)
        return
    tokenizer, config = tokenizer_from(task["tokenizer"]), TextConfig(**task["text"])
    stages = stages_of(paths, valid_paths)
    with cache_entry(shards / task["shards"]) as folder:
        yield from make_shards(folder, stages, tokenizer, config, task["max_sentence"], place.workers, division)


def parts_of(
    task: Mapping[str, Any], paths: list[Path], valid_paths: list[Path] | None, workers: int, division: Division
) -> Iterator[Results]:
    """The work of a machine that needs no results."""
    config = TextConfig(**task["text"])
    if task["work"] != TOKENISE:
        yield count_files(dict(task), paths, config, workers, division)
        return
    tokenizer = tokenizer_from(task["tokenizer"])
    for files, _, _ in stages_of(paths, valid_paths):
        yield tokenise_files(files, tokenizer, config, task["max_sentence"], workers, division)


def division_of(places: Sequence[Mapping[str, Any]], machine: int, ranks: Ranks) -> Division:
    """The same in all machines; each has as many turns as workers."""
    among = [place["rank"] for place in places]
    turns = [number for number, place in enumerate(places) for _ in range(place["workers"])]
    receivers = frozenset(number for number, place in enumerate(places) if place["receives"])

    def exchange(mine: bytes, to: Collection[int]) -> list[bytes]:
        return ranks.exchange(mine, among, [among[number] for number in to])

    return Division(machine, tuple(turns), receivers, exchange, partial(why_left, ranks))


class TaskEndedError(HeadstartError):
    """Another machine has stopped working on a task. The first process says why."""


def why_left(ranks: Ranks) -> HeadstartError:
    if not ranks.launch.is_first:
        return TaskEndedError("Another machine has stopped working on the text.")
    deadline = time.monotonic() + EXPLAINING_SECONDS
    while time.monotonic() < deadline:
        raise_refusal(ranks)
        time.sleep(POLL_SECONDS)
    return LostProcessError("A process on another machine has stopped, and has not said why.")


def contents(sources: Sequence[str], valid: Sequence[str] | None) -> list[str | None]:
    return [None if some is None else content_key(discover(some)) for some in (sources, valid)]


def tokenizer_from(files: Mapping[str, str]) -> Tokenizer:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        return load_tokenizer(Path(folder))


def task_key(number: int) -> str:
    return f"task/{number}"


def answer_key(number: int, machine: int) -> str:
    return f"task/{number}/machine/{machine}"


def places_key(number: int) -> str:
    return f"task/{number}/places"
