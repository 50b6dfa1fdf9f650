"""How the other processes of a run get ready: they learn from the first one what it is, and open the same shards."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

from headstart.config import Table, resolve, settings_of
from headstart.errors import DataError, EndedElsewhereError, HeadstartError
from headstart.pretraining.base import RunConfig, Workplace
from headstart.pretraining.dividing import (
    TaskEndedError,
    help_with_task,
    task_key,
    tokenizer_from,
)
from headstart.pretraining.events import Joined
from headstart.pretraining.following import follow
from headstart.pretraining.learner import Learner
from headstart.pretraining.objectives import OBJECTIVES, AnyPretraining
from headstart.progress import Progress
from headstart.text.documents import discover
from headstart.text.tokenise import Corpora, files_of, open_corpora, prepare
from headstart.text.tokenizer import Tokenizer
from headstart.training.coordination import awaited, come_to, refuse, until_ended
from headstart.training.ranks import Ranks

RUN, READY = "run", "ready"


@dataclass(frozen=True, slots=True)
class Described:
    """A run as the first process describes it to the others. It travels as JSON."""

    objective: str
    settings: Table
    sources: list[str]
    valid: list[str] | None
    shards: str
    """The name of their folder, which follows from the text and the tokenizer."""
    tokenizer: dict[str, str]
    """Its files, by name."""


def describe(
    pretraining: AnyPretraining,
    config: RunConfig,
    sources: list[str],
    valid: list[str] | None,
    tokenizer: Tokenizer,
    corpora: Corpora,
    ranks: Ranks,
) -> None:
    """For the first process, once its text is in shards."""
    run = Described(pretraining.name, settings_of(config), sources, valid, corpora.name, files_of(tokenizer))
    ranks.publish(RUN, {field.name: getattr(run, field.name) for field in fields(run)})
    ranks.publish(prepared(0), True)


def join_run(place: Workplace) -> Generator[Joined | Progress, None, None]:
    """All that any process but the first does; returns when the first one has ended."""
    ranks = place.ranks
    try:
        learner = yield from get_ready(place)
    except EndedElsewhereError:
        raise
    except HeadstartError as error:
        refuse(ranks, error)
        yield from until_ended(ranks)
        raise
    if learner is not None:
        yield from follow(learner, ranks)


def get_ready(place: Workplace) -> Generator[Progress, None, Learner | None]:
    """The learner of this process; None where the first one was stopped before."""
    ranks, launch = place.ranks, place.ranks.launch
    # One process of each machine helps with the text, and fills the cache where it is not that of the first process.
    helps = launch.machine > 0 and not launch.local_rank
    told = yield from (help_until_described(place) if helps else awaited(ranks, RUN))
    if told is None or (launch.local_rank and (yield from awaited(ranks, prepared(launch.machine))) is None):
        return None
    run = Described(**told)
    pretraining = OBJECTIVES[run.objective]
    config = pretraining.without_start(resolve(pretraining.config, run.settings))
    tokenizer = tokenizer_from(run.tokenizer)
    corpora = open_corpora(place.cache / "shards" / run.shards, reused=True)
    if corpora is None:
        corpora = yield from prepare_again(run, pretraining, config, tokenizer, place)
    if not launch.local_rank:
        ranks.publish(prepared(launch.machine), True)
    learner: Learner = yield from pretraining.learner(config, tokenizer, corpora, place)
    come_to(ranks, READY)
    return learner


def help_until_described(place: Workplace) -> Generator[Progress, None, Any]:
    """Help with each task on the text, until the first process describes its run; None where it ends before."""
    ranks = place.ranks
    for number in count():
        told = yield from awaited(ranks, task_key(number), RUN)
        if told is None or "work" not in told:
            return told
        try:
            yield from help_with_task(number, told, place)
        except TaskEndedError:
            yield from until_ended(ranks)
            return None


def prepare_again(
    run: Described, pretraining: AnyPretraining, config: RunConfig, tokenizer: Tokenizer, place: Workplace
) -> Generator[Progress, None, Corpora]:
    """The same shards, on a machine that cannot see those of the first process."""
    valid_paths = None if run.valid is None else discover(run.valid)
    corpora = yield from prepare(
        discover(run.sources),
        valid_paths,
        tokenizer,
        config.text,
        cache=place.cache,
        max_sentence=pretraining.longest_sentence(config),
        workers=place.workers,
    )
    if corpora.name != run.shards:
        raise DataError(
            f"{run.sources[0]}: the text on this machine is not that of the first process. Give all machines the same "
            "files, or a cache that they share (HEADSTART_HOME)."
        )
    return corpora


def prepared(machine: int) -> str:
    return f"prepared/{machine}"
