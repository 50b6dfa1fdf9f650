"""The verb `transfer`: what an encoder learned from text, carried over to a labelled task."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from headstart.atomic import write_text
from headstart.config import Section, Table, cache_home, settings_of
from headstart.errors import ConfigError, DataError
from headstart.progress import Notice, Progress, result_of
from headstart.report.plots import mix_weights, mixes_of
from headstart.report.results import Baseline, Forgetting, LayerWeights, Run, TransferResults
from headstart.report.results_json import transfer_to_json
from headstart.tasks import task_class
from headstart.tasks.examples import TaskData, content_of, draw, read_task
from headstart.text.building import cache_key
from headstart.text.documents import discover
from headstart.training.coordination import helping, leading, told, until_ended
from headstart.training.ranks import Alone, Ranks
from headstart.training.run import RunDirectory
from headstart.transfer.card import task_card
from headstart.transfer.config import TransferConfig
from headstart.transfer.features import encoder_fingerprint
from headstart.transfer.fit import Fitted, gather_features, measure_forgetting, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import SCRATCH, Start, open_start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.weights.sources import Source, labelled_file

PLAN = "plan"


@dataclass(frozen=True, slots=True)
class SeedDone:
    """One of the seeds is fitted."""

    seed: int
    fitted: Fitted
    left: int


@dataclass(frozen=True, slots=True)
class Transferred:
    """All seeds are fitted, and the best one is in the run directory."""

    out: Path
    results: TransferResults
    together: bool = False
    """Whether the two texts of a pair stand in one sequence."""


TransferEvent = Progress | FitStep | Notice | SeedDone | Transferred


def transfer(
    task: str = "classify",
    *,
    source: Source = SCRATCH,
    how: str = "frozen",
    train: str | Path,
    dev: str | Path | None = None,
    out: str | Path,
    labels: int | None = None,
    seeds: int = 3,
    examples: Section | None = None,
    settings: Mapping[str, Any] | None = None,
    held_out: Sequence[str] | None = None,
    cache: str | Path | None = None,
    ranks: Ranks | None = None,
) -> Generator[TransferEvent, None, None]:
    """Carry `source` over to labelled examples, once per seed; the best seed's model is left in the folder `out`.

    task: a name that `headstart.tasks.TASKS` or its aliases have. `source` is scratch or whatever `headstart.load`
    opens; `train` and `dev` are files, or names of the catalogue. `examples`: the settings of the task's readers.
    `settings` is a table such as {"network": {"cell": "gru"}}. Without `dev` a tenth of the examples is held out.
    Fine-tuning is followed by a measurement of what the encoder forgot, on its own held-out text or on `held_out`.
    `ranks` are the processes that fit together (`headstart.training.ranks.joined`): each is given the same arguments,
    and the first one writes `out`.
    """
    ranks = ranks or Alone()
    read = partial(
        read_request, task, source=source, how=how, train=train, dev=dev, out=Path(out), labels=labels, seeds=seeds,
        examples=examples, settings=settings, held_out=held_out, cache=Path(cache) if cache else cache_home(),
        ranks=ranks,
    )  # fmt: skip
    if not ranks.launch.is_first:
        return helping(ranks, help_with_transfer(read, ranks))
    request = read()
    if not ranks.started_here(str(request.out)):
        RunDirectory.create(request.out, resumable=False)
    if ranks.launch.world == 1:
        return run_transfer(request)
    ranks.publish(PLAN, plan_of(request))
    return leading(ranks, run_transfer(request))


@dataclass(frozen=True, slots=True)
class Request:
    start: Start
    config: TransferConfig
    data: TaskData[Any]
    draws: list[list[Any]]
    out: Path
    held_out: Sequence[str] | None
    cache: Path
    ranks: Ranks


def read_request(
    task: str,
    *,
    source: Source,
    how: str,
    train: str | Path,
    dev: str | Path | None,
    out: Path,
    labels: int | None,
    seeds: int,
    examples: Section | None,
    settings: Mapping[str, Any] | None,
    held_out: Sequence[str] | None,
    cache: Path,
    ranks: Ranks,
) -> Request:
    """Whatever the user can put right is refused here."""
    kind = task_class(task)
    if seeds < 1:
        raise ConfigError(f"--seeds is a count of one or more; got {seeds}.")
    start = open_start(source, cache)
    config = settings_for(kind, start, how, settings)
    if held_out is not None:
        discover(held_out)  # a path that is not there is told now, and not after the fits
    train, dev = result_of(labelled_file(train, cache)), None if dev is None else result_of(labelled_file(dev, cache))
    if not ranks.launch.local_rank:
        ranks.publish(opened(ranks.launch.machine), True)
    data = read_task(kind, train, dev, examples or kind.Input())
    draws = [draw(data.task, data.train, labels, seed) for seed in range(seeds)]
    return Request(start, config, data, draws, out, held_out, cache, ranks)


def help_with_transfer(read: Callable[[], Request], ranks: Ranks) -> Generator[TransferEvent, None, None]:
    """All that any process but the first does."""
    launch = ranks.launch
    if launch.local_rank:
        yield from told(ranks, opened(launch.machine))  # one process of a machine downloads what there is to download
    request = read()
    check_plan(plan_of(request), (yield from told(ranks, PLAN)))
    yield from fit_seeds(request)
    yield from until_ended(ranks)


def opened(machine: int) -> str:
    """Where a machine's first process says that its files are there."""
    return f"opened/{machine}"


def plan_of(request: Request) -> dict[str, str]:
    """What the processes of a fit must have in common: checksums, by what they are of."""
    start, data = request.start, request.data
    encoders = [[encoder_fingerprint(one.encoder), one.tokenizer.fingerprint] for one in start.pretrained]
    settings = [data.task.to_table(), settings_of(request.config), len(request.draws), len(request.draws[0])]
    return {
        "The training examples": content_of(data.task, data.train),
        "The dev examples": content_of(data.task, data.dev),
        "The pretrained weights": cache_key(encoders=encoders),
        "The settings": cache_key(task=data.task.name, settings=settings, headstart=version("headstart")),
    }


def check_plan(mine: Mapping[str, str], first: Mapping[str, str]) -> None:
    for what, checksum in mine.items():
        if first[what] != checksum:
            raise DataError(
                f"{what} are not those of the first process. Give all processes the same command, the same files and "
                "the same version of Headstart."
            )


def run_transfer(request: Request) -> Generator[TransferEvent, None, None]:
    run, ranks = RunDirectory(request.out), request.ranks
    # torchrun starts processes again after one of them has died. What they left is then written over.
    again = ranks.started_here(str(run.path))
    try:
        with run.locked(new=not again):
            ranks.start_here(str(run.path))
            try:
                results = yield from fit_and_save(request, run)
            except BaseException:
                run.discard()  # half a task model is of no use, and would keep the same command from being given again
                raise
    finally:
        run.remove_if_empty()
    yield Transferred(request.out, results, request.config.network.reads_together)


def fit_seeds(request: Request) -> Generator[TransferEvent, None, list[Fitted]]:
    data, ranks = request.data, request.ranks
    features = None
    if request.config.how == "frozen":
        wanted = [example for part in (*request.draws, data.dev) for example in part]
        features = yield from gather_features(
            request.start, data.task, wanted, request.config, request.cache, ranks=ranks
        )
    runs: list[Fitted] = []
    for seed, part in enumerate(request.draws):
        fitted = yield from transfer_once(
            request.start, request.config, data.task, part, data.dev, seed=seed, features=features, ranks=ranks
        )
        runs.append(fitted)
        yield SeedDone(seed, fitted, len(request.draws) - seed - 1)
    return runs


def fit_and_save(request: Request, run: RunDirectory) -> Generator[TransferEvent, None, TransferResults]:
    for text in (*request.data.notices, *request.start.notices):
        yield Notice(text)
    runs = yield from fit_seeds(request)
    forgotten = yield from measure_forgetting(
        request.start, best_of(runs), held_out=request.held_out, cache=request.cache
    )
    results = results_of(request, runs, forgotten)
    write_text(request.out / "results.json", json.dumps(transfer_to_json(results), indent=1, ensure_ascii=False) + "\n")
    run.write_card(task_card(results))
    picture = mix_weights(mixes_of(f"{results.source}, {results.how}", [fit.mix for fit in results.runs]))
    if picture is not None:
        write_text(request.out / "mix.svg", picture)
    # Last: where there is a model, the files that tell about it are whole, too.
    save_task_model(best_of(runs).model, request.out, record_of(request, results))
    return results


def best_of(runs: list[Fitted]) -> Fitted:
    return max(runs, key=lambda fitted: fitted.score)


def results_of(request: Request, runs: list[Fitted], forgotten: Forgetting | None) -> TransferResults:
    data, best = request.data, best_of(runs)
    title, answers = data.task.baseline(request.draws[0], data.dev)
    counts = data.task.all_counts(data.dev, answers)
    metric = data.task.metric
    return TransferResults(
        task=data.task.name,
        source=request.start.name,
        kind=request.start.kind,
        how=request.config.how,
        labels=len(request.draws[0]),
        classes=data.task.class_names,
        dev=len(data.dev),
        metric=metric.name,
        metric_title=metric.title,
        runs=[run_of(seed, fitted, metric.name) for seed, fitted in enumerate(runs)],
        best_seed=runs.index(best),
        truncated=best.truncated,
        parameters=best.parameters,
        forgetting=forgotten,
        baseline=Baseline(title, metric.of(counts), counts),
        notices=data.notices,
    )


def run_of(seed: int, fitted: Fitted, metric: str) -> Run:
    return Run(
        seed=seed,
        metric=metric,
        scores=fitted.scores,
        seconds=fitted.seconds,
        steps=fitted.steps,
        best_step=fitted.best_step,
        curve=fitted.curve,
        collapsed=fitted.collapsed,
        mix={place: LayerWeights(**weights) for place, weights in fitted.mix.items()},
    )


def record_of(request: Request, results: TransferResults) -> Table:
    """What config.toml says of the run: where it came from and what it reached."""
    return {
        "source": request.start.name,
        "labels": results.labels,
        "seed": results.best_seed,
        **results.best.scores,
        "headstart": version("headstart"),
        "torch": torch.__version__,
    }
