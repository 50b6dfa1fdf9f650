"""`pretrain`: from unlabelled text to a pretrained encoder in a run directory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from headstart.config import (
    Table,
    cache_home,
    overlay,
    pick,
    read_toml,
    resolve,
    settings_of,
    settings_table,
)
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import COMPACTED
from headstart.pretraining.base import RunConfig, Workplace
from headstart.pretraining.card import run_card
from headstart.pretraining.dividing import OtherMachines
from headstart.pretraining.events import Finished, Joined, Planned
from headstart.pretraining.following import Leader, leading
from headstart.pretraining.joining import READY, describe, join_run
from headstart.pretraining.learner import Learner
from headstart.pretraining.loop import LENGTHS, Clock, Step
from headstart.pretraining.memory import check_memory
from headstart.pretraining.objectives import DEFAULT_STATIC, OBJECTIVES, STATIC, AnyPretraining, recorded
from headstart.pretraining.session import Facts, Session
from headstart.pretraining.starting import Beginning, begin, open_beginning, settings_that_fit
from headstart.progress import Notice, Progress
from headstart.text.documents import content_key, discover, settle_layout
from headstart.text.tokenise import Corpora, prepare
from headstart.text.tokenizer import Tokenizer
from headstart.training.coordination import wait_for_others
from headstart.training.machine import available_cores, machine
from headstart.training.ranks import Alone, Ranks
from headstart.training.run import WEIGHTS, RunDirectory

Event = Progress | Notice | Joined | Planned | Step | Finished
Sources = str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that decides a run, resolved and checked."""

    pretraining: AnyPretraining
    config: RunConfig
    sources: list[str]
    valid: list[str] | None
    out: Path
    resumed_data: Table | None
    place: Workplace
    beginning: Beginning | None
    shards: bool = False
    """Whether each process holds a piece of every weight."""


Prepared = tuple[Learner, Callable[[Leader], Session]]


def pretrain(
    kind: str,
    text: Sources = (),
    *,
    out: str | Path,
    valid: Sources | None = None,
    start: str | Path | None = None,
    size: str | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    steps: int | None = None,
    epochs: float | None = None,
    budget: str | float | None = None,
    seed: int | None = None,
    resume: bool = False,
    cache: str | Path | None = None,
    workers: int | None = None,
    ranks: Ranks | None = None,
    shard: bool = False,
) -> Generator[Event, None, None]:
    """Pretrain `kind` ("skipgram", "cbow", "glove", "elmo" or "bert") on `text` and leave it in the folder `out`.

    "static" is skip-gram or, with `resume`, whichever kind of word vectors the run began as. `start` is an ELMo or BERT
    to go on from: the run begins with its weights, tokenizer and settings, and reads `text` once unless told otherwise.

    Settings are checked at once; the work happens as the returned generator is drawn from, and each value says how far
    it is. Closing it, or leaving the `for`, stops the run after the current step with a checkpoint saved, so that
    `resume=True` goes on from there. `settings` is {"encoder.layers": 3} or ["encoder.layers=3"]. `ranks` are the
    processes that train together (`headstart.training.ranks.joined`): only the first one's other arguments count.
    `shard` divides weights, gradients and moments among them, for a model that one process has no memory for.

        for event in headstart.pretrain("bert", "reviews.txt", out="runs/bert", size="tiny", budget="10m"):
            print(event)
    """
    ranks = ranks or Alone()
    home = Path(cache) if cache is not None else cache_home()
    place = Workplace(home, workers or available_cores(), ranks)
    if not ranks.launch.is_first:
        return join_run(place)
    pick({**OBJECTIVES, STATIC: None}, kind, "encoder")
    resume = resume or ranks.started_here(str(out))
    lengths = {"steps": steps, "epochs": epochs, "budget": budget}
    flags: Table = {"training": {name: value for name, value in lengths.items() if value is not None}}
    flags |= {name: value for name, value in (("seed", seed), ("start", start and str(start))) if value is not None}
    given = overlay(with_length(read_table(config), flags), flags, settings_table(settings))
    sources, valid_sources = as_list(text), None if valid is None else as_list(valid)
    data: Table | None = None
    if resume and not RunDirectory.holds_nothing(Path(out)):
        pretraining, table, data = continued(RunDirectory.open(Path(out), made_anew=[WEIGHTS]), kind, size, given)
        sources = sources or data["sources"]
        valid_sources = valid_sources or data.get("valid")
    else:
        pretraining = OBJECTIVES[DEFAULT_STATIC if kind == STATIC else kind]
        table = pretraining.defaults(size, given)
    source = (given if data is None else table).get("start")
    beginning = None if source is None else open_beginning(source, pretraining, home)
    if data is None:
        carried = {} if beginning is None else settings_that_fit(beginning, given, size)
        table = overlay(with_length(overlay(table, carried), given), given)
    if not sources and resume:
        raise CheckpointError(
            f"{out}: there is no run to resume in this folder. Name the folder of a run in --out, or start a new run "
            f"by naming its text."
        )
    if not sources:
        raise ConfigError("There is no text to learn from: name one or more files, folders or globs.")
    if ranks.launch.world > 1 and not pretraining.divides:
        raise ConfigError(
            f"Word vectors are trained by one process, on all cores of its machine; torchrun started "
            f"{ranks.launch.world}. Start it without torchrun."
        )
    if shard and not pretraining.divides:
        raise ConfigError("Word vectors are trained by one process, which holds them whole. Leave --shard out.")
    resolved = resolve(pretraining.config, table)
    request = Request(
        pretraining,
        resolved,
        sources,
        valid_sources,
        Path(out),
        data,
        place,
        beginning,
        shards=shard and ranks.launch.world > 1,
    )
    check_memory(parameter_bytes(request, vocabulary_size=1))  # before the text is read, too
    if shard and not request.shards:
        return after(Notice("--shard divides a model among the processes of torchrun; this one trains alone."), request)
    return run_pretraining(request)


def parameter_bytes(request: Request, vocabulary_size: int) -> int:
    """What the parameters take in training, in the memory that this process has or shares with its machine's others."""
    needed = request.pretraining.training_bytes(request.config, vocabulary_size)
    launch = request.place.ranks.launch
    return needed * launch.local_world // launch.world if request.shards else needed


def after(notice: Notice, request: Request) -> Generator[Event, None, None]:
    yield notice
    yield from run_pretraining(request)


def run_pretraining(request: Request) -> Generator[Event, None, None]:
    """Text -> tokenizer -> shards -> learner -> steps -> weights."""
    clock = Clock.start()
    is_new = request.resumed_data is None
    # A folder that cannot be written, or that another process writes, is refused before the text is read.
    run = RunDirectory.create(request.out) if is_new else RunDirectory(request.out)
    try:
        with run.locked(new=is_new):
            learner, session_of = yield from prepare_session(request, clock)
            if request.shards:
                many = request.place.ranks.launch.world
                yield Notice(f"Weights, gradients and AdamW's moments are divided among {many} processes.")
            divided = run.path if request.shards else None
            with leading(learner, request.place.ranks, divided) as leader:
                yield from session_of(leader).go()
    finally:
        run.remove_if_empty()


def prepare_session(request: Request, clock: Clock) -> Generator[Progress | Notice, None, Prepared]:
    """Everything before the first step; the configuration and the tokenizer are then in the run directory."""
    pretraining, place, paths = request.pretraining, request.place, discover(request.sources)
    machines = OtherMachines(place.ranks, place.workers, request.sources, request.valid)
    place = replace(place, machines=machines)
    text, notice = settle_layout(paths, request.config.text)
    if notice is not None:
        yield Notice(notice)
    config = request.config.model_copy(update={"text": text})
    request = replace(request, config=config)
    valid_paths = None if request.valid is None else discover(request.valid)
    tokenizer: Tokenizer
    if request.beginning is None:
        tokenizer = yield from pretraining.tokenizer(config, paths, place)
    else:
        tokenizer = request.beginning.pretrained.tokenizer
    check_memory(parameter_bytes(request, len(tokenizer)))
    corpora = yield from prepare(
        paths,
        valid_paths,
        tokenizer,
        config.text,
        cache=place.cache,
        max_sentence=pretraining.longest_sentence(config),
        workers=place.workers,
        machines=place.machines,
    )
    describe(pretraining, config, request.sources, request.valid, tokenizer, corpora, place.ranks)
    learner = yield from pretraining.learner(config, tokenizer, corpora, place)
    if request.beginning is not None:
        begin(learner, request.beginning, pretraining.untrained_heads(config))
    data = data_table(paths, valid_paths, tokenizer, corpora, place.ranks.launch.world)
    run = write_down(request, data, tokenizer)
    yield from wait_for_others(place.ranks, READY)

    def write_card(finished: Finished, complete: bool) -> None:
        run.write_card(run_card(config.model_dump(), data, finished, complete=complete))

    facts = facts_of(config, tokenizer, corpora, place.ranks.launch.world)
    return learner, lambda leader: Session(run, leader, config.training, clock, facts, write_card)


def write_down(request: Request, data: Table, tokenizer: Tokenizer) -> RunDirectory:
    """The configuration and the tokenizer into the run directory; on resume, check that they are the same."""
    run = RunDirectory(request.out)
    before = request.resumed_data
    if before is None:
        run.write_config({**settings_of(request.config), "data": data})
    else:
        for key, what in (("content", "text"), ("valid_content", "held-out text"), ("tokenizer", "tokenizer")):
            if before.get(key) != data.get(key):
                raise CheckpointError(
                    f"{run.path}: --resume needs the {what} that the run began with, but its checksum differs. "
                    f"Give the same files, or start a new run in another --out."
                )
    tokenizer.save(run.path)
    request.place.ranks.start_here(str(run.path))
    return run


def data_table(
    paths: list[Path], valid_paths: list[Path] | None, tokenizer: Tokenizer, corpora: Corpora, processes: int
) -> Table:
    """What the run learns from, for config.toml: enough to find it again and to notice that it changed."""
    table: Table = {
        "sources": [str(path.resolve()) for path in paths],
        "content": content_key(paths),
        "tokenizer": tokenizer.fingerprint,
        "vocabulary": len(tokenizer),
        "documents": corpora.train.n_documents,
        "sentences": corpora.train.n_sentences,
        "units": corpora.train.n_units,
        "valid_units": corpora.valid.n_units if corpora.valid else 0,
        "headstart": version("headstart"),
        "torch": torch.__version__,
        "machine": f"{machine()}; {processes} processes" if processes > 1 else machine(),
    }
    if valid_paths is not None:
        table |= {"valid": [str(path.resolve()) for path in valid_paths], "valid_content": content_key(valid_paths)}
    return table


def facts_of(config: RunConfig, tokenizer: Tokenizer, corpora: Corpora, processes: int) -> Facts:
    return Facts(
        kind=config.kind,
        size=config.size,
        vocabulary=len(tokenizer),
        documents=corpora.train.n_documents,
        units=corpora.train.n_units,
        valid_units=corpora.valid.n_units if corpora.valid else 0,
        shard_bytes=sum(file.stat().st_size for file in corpora.train.directory.rglob("*") if file.is_file()),
        processes=processes,
    )


def continued(run: RunDirectory, kind: str, size: str | None, given: Table) -> tuple[AnyPretraining, Table, Table]:
    """The objective, the settings and the data table of a run to resume; settings given must not differ from them."""
    before = recorded(run)
    pretraining, table = before.pretraining, before.settings
    if COMPACTED in before.data:
        raise CheckpointError(
            f"{run.path}: is a compact run, which has no checkpoint to resume from. Resume the run that it was made of."
        )
    if kind not in (pretraining.name, table["kind"]):
        raise CheckpointError(f"{run.path}: --resume cannot go on as {kind}: this run is of kind {pretraining.name}.")
    saved = resolve(pretraining.config, table, str(run.path / "config.toml"))
    asked = resolve(pretraining.config, overlay(table, given, {"size": size} if size else {}))
    had, now = flat(saved.model_dump()), flat(asked.model_dump())
    for key, value in now.items():
        if had[key] != value:
            raise CheckpointError(
                f"{run.path}: --resume cannot change '{key}': the run began with {had[key]!r}, got {value!r}. "
                f"Leave the option out, or start a new run in another --out."
            )
    return pretraining, table, before.data


def with_length(defaults: Table, given: Table) -> Table:
    """Defaults, minus their run length (steps, epochs or budget) if the user gave one."""
    if not given.get("training", {}).keys() & set(LENGTHS) or "training" not in defaults:
        return defaults
    training = {key: value for key, value in defaults["training"].items() if key not in LENGTHS}
    return {**defaults, "training": training}


def read_table(config: str | Path | Mapping[str, Any] | None) -> Table:
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    table = read_toml(Path(config))
    table.pop("data", None)  # the config.toml of another run may be given: its text is not part of the settings
    return table


def as_list(sources: Sources) -> list[str]:
    return [str(sources)] if isinstance(sources, str | Path) else [str(source) for source in sources]


def flat(table: Mapping[str, Any], prefix: str = "") -> Table:
    leaves: Table = {}
    for key, value in table.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return leaves
