"""How the other processes of a run get ready: they learn from the first one what it is, and open the same shards."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from headstart.config import Table, resolve, settings_of
from headstart.errors import DataError, EndedElsewhereError, HeadstartError
from headstart.pretraining.base import RunConfig, Workplace
from headstart.pretraining.events import Joined
from headstart.pretraining.following import follow
from headstart.pretraining.learner import Learner
from headstart.pretraining.objectives import OBJECTIVES, AnyPretraining
from headstart.progress import Progress
from headstart.text.documents import discover
from headstart.text.tokenise import Corpora, open_corpora, prepare
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.ranks import Ranks

POLL_SECONDS = 0.1
RUN, REFUSED = "run", "refused"


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
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        files = {path.name: path.read_text(encoding="utf-8") for path in Path(folder).iterdir()}
    run = Described(pretraining.name, settings_of(config), sources, valid, corpora.name, files)
    ranks.publish(RUN, {field.name: getattr(run, field.name) for field in fields(run)})
    ranks.publish(prepared(0), True)


def wait_for_others(ranks: Ranks) -> Generator[Progress, None, None]:
    """For the first process: until the others are ready. A mistake that one of them has found is raised here."""
    others = range(1, ranks.launch.world)
    for rank in others:
        while ranks.published(ready(rank)) is None:
            refused = ranks.published(REFUSED)
            if refused is not None:
                raise HeadstartError(refused)
            yield Progress("waiting for the other processes", rank - 1, len(others), "processes")
            time.sleep(POLL_SECONDS)


def join_run(place: Workplace) -> Generator[Joined | Progress, None, None]:
    """All that any process but the first does; returns when the first one has ended."""
    ranks = place.ranks
    try:
        learner = yield from get_ready(place)
    except EndedElsewhereError:
        raise
    except HeadstartError as error:
        ranks.publish(REFUSED, f"Process {ranks.launch.rank}, on machine {ranks.launch.machine}: {error}")
        yield from until_ended(ranks)
        raise
    if learner is not None:
        yield from follow(learner, ranks)


def get_ready(place: Workplace) -> Generator[Progress, None, Learner | None]:
    """The learner of this process; None where the first one was stopped before."""
    ranks, launch = place.ranks, place.ranks.launch
    told = yield from awaited(ranks, RUN)
    # Where the cache is not that of the first process, one process of each machine fills it.
    if told is None or (launch.local_rank and (yield from awaited(ranks, prepared(launch.machine))) is None):
        return None
    run = Described(**told)
    pretraining = OBJECTIVES[run.objective]
    config = pretraining.without_start(resolve(pretraining.config, run.settings))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in run.tokenizer.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        tokenizer = load_tokenizer(Path(folder))
    corpora = open_corpora(place.cache / "shards" / run.shards, reused=True)
    if corpora is None:
        corpora = yield from prepare_again(run, pretraining, config, tokenizer, place)
    if not launch.local_rank:
        ranks.publish(prepared(launch.machine), True)
    learner: Learner = yield from pretraining.learner(config, tokenizer, corpora, place)
    ranks.publish(ready(launch.rank), True)
    return learner


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


def awaited(ranks: Ranks, key: str) -> Generator[Progress, None, Any]:
    """What is published under this key, or None if the first process ends before that."""
    while (value := ranks.published(key)) is None:
        if ranks.ended():
            return None
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(POLL_SECONDS)
    return value


def until_ended(ranks: Ranks) -> Generator[Progress, None, None]:
    """Let the first process say what it has been told: it raises EndedElsewhereError when that has happened."""
    while not ranks.ended():
        yield Progress("waiting for the first process", 0, 0, "")
        time.sleep(POLL_SECONDS)


def prepared(machine: int) -> str:
    return f"prepared/{machine}"


def ready(rank: int) -> str:
    return f"ready/{rank}"
