"""The verb `transfer`: what an encoder learned from text, carried over to a labelled task."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from headstart.atomic import write_text
from headstart.config import Section, Table, cache_home
from headstart.errors import ConfigError
from headstart.progress import Notice, Progress, result_of
from headstart.report.plots import mix_weights, mixes_of
from headstart.report.results import Baseline, Forgetting, LayerWeights, Run, TransferResults
from headstart.report.results_json import transfer_to_json
from headstart.tasks import task_class
from headstart.tasks.examples import TaskData, draw, read_task
from headstart.text.documents import discover
from headstart.training.run import RunDirectory
from headstart.transfer.card import task_card
from headstart.transfer.config import TransferConfig
from headstart.transfer.fit import Fitted, gather_features, measure_forgetting, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import SCRATCH, Start, open_start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.weights.sources import Source, labelled_file


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
) -> Generator[TransferEvent, None, None]:
    """Carry `source` over to labelled examples, once per seed; the best seed's model is left in the folder `out`.

    task: a name that `headstart.tasks.TASKS` or its aliases have. `source` is scratch or whatever `headstart.load`
    opens; `train` and `dev` are files, or names of the catalogue. `examples`: the settings of the task's readers.
    `settings` is a table such as {"network": {"cell": "gru"}}. Without `dev` a tenth of the examples is held out.
    Fine-tuning is followed by a measurement of what the encoder forgot, on its own held-out text or on `held_out`.
    """
    kind = task_class(task)
    if seeds < 1:
        raise ConfigError(f"--seeds is a count of one or more; got {seeds}.")
    home = Path(cache) if cache else cache_home()
    start = open_start(source, home)
    config = settings_for(kind, start, how, settings)
    if held_out is not None:
        discover(held_out)  # a path that is not there is told now, and not after the fits
    train, dev = result_of(labelled_file(train, home)), None if dev is None else result_of(labelled_file(dev, home))
    data = read_task(kind, train, dev, examples or kind.Input())
    draws = [draw(data.task, data.train, labels, seed) for seed in range(seeds)]
    RunDirectory.create(Path(out), resumable=False)
    return run_transfer(Request(start, config, data, draws, Path(out), held_out, home))


@dataclass(frozen=True, slots=True)
class Request:
    start: Start
    config: TransferConfig
    data: TaskData[Any]
    draws: list[list[Any]]
    out: Path
    held_out: Sequence[str] | None
    cache: Path


def run_transfer(request: Request) -> Generator[TransferEvent, None, None]:
    run = RunDirectory(request.out)
    try:
        with run.locked(new=True):
            try:
                results = yield from fit_and_save(request, run)
            except BaseException:
                run.discard()  # half a task model is of no use, and would keep the same command from being given again
                raise
    finally:
        run.remove_if_empty()
    yield Transferred(request.out, results, request.config.network.reads_together)


def fit_and_save(request: Request, run: RunDirectory) -> Generator[TransferEvent, None, TransferResults]:
    data = request.data
    for text in (*data.notices, *request.start.notices):
        yield Notice(text)
    features = None
    if request.config.how == "frozen":
        wanted = [example for part in (*request.draws, data.dev) for example in part]
        features = yield from gather_features(request.start, data.task, wanted, request.config, request.cache)
    runs: list[Fitted] = []
    for seed, part in enumerate(request.draws):
        fitted = yield from transfer_once(
            request.start, request.config, data.task, part, data.dev, seed=seed, features=features
        )
        runs.append(fitted)
        yield SeedDone(seed, fitted, len(request.draws) - seed - 1)
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
