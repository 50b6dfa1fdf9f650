"""The verb `transfer`: what an encoder learned from text, carried over to a labelled task."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headstart.atomic import write_text
from headstart.config import Section, Table, cache_home
from headstart.errors import ConfigError
from headstart.metrics import mean
from headstart.progress import Notice, Progress, result_of
from headstart.report.plots import mix_weights
from headstart.tasks import task_class
from headstart.tasks.examples import TaskData, draw, read_task
from headstart.text.documents import discover
from headstart.training.run import RunDirectory
from headstart.transfer.card import task_card
from headstart.transfer.config import TransferConfig
from headstart.transfer.fit import Fitted, gather_features, measure_forgetting, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.forgetting import Forgetting
from headstart.transfer.start import SCRATCH, Start, open_start, settings_for
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
    results: Table


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
    RunDirectory.create(Path(out))
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
    run, data = RunDirectory(request.out), request.data
    try:
        for text in (*data.notices, *(request.start.pretrained.notices if request.start.pretrained else ())):
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
        best_of(runs).model.save(request.out, record_of(request, results))
        write_text(request.out / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        run.write_card(task_card(results))
        picture = mix_weights(as_comparison(results))
        if picture is not None:
            write_text(request.out / "mix.svg", picture)
    finally:
        run.remove_if_empty()
    yield Transferred(request.out, results)


def best_of(runs: list[Fitted]) -> Fitted:
    return max(runs, key=lambda fitted: fitted.score)


def results_of(request: Request, runs: list[Fitted], forgotten: Forgetting | None) -> Table:
    scores = [fitted.scores["accuracy"] for fitted in runs]
    best = best_of(runs)
    return {
        "task": "sentiment",
        "source": request.start.name,
        "kind": request.start.kind,
        "how": request.config.how,
        "labels": len(request.draws[0]),
        "classes": request.data.names,
        "dev": len(request.data.dev),
        "accuracy": mean(scores),
        "spread": float(np.std(scores, ddof=1)) if len(scores) > 1 else None,
        "macro_f1": mean([fitted.scores["macro_f1"] for fitted in runs]),
        "best_seed": runs.index(best),
        "truncated": best.truncated,
        "parameters": best.parameters,
        "mix": best.mix,
        "forgetting": None if forgotten is None else asdict(forgotten),
        "runs": [
            {
                "seed": seed,
                **fitted.scores,
                "steps": fitted.steps,
                "best_step": fitted.best_step,
                "seconds": fitted.seconds,
                "collapsed": fitted.collapsed,
                "mix": fitted.mix,
            }
            for seed, fitted in enumerate(runs)
        ],
        "notices": request.data.notices,
    }


def as_comparison(results: Table) -> Table:
    """One row of a comparison, for the pictures that are made of those."""
    row = {"name": results["source"], "title": f"{results['source']}, {results['how']}"}
    cells = [{**run, "row": results["source"], "labels": results["labels"]} for run in results["runs"]]
    return {"rows": [row], "cells": cells}


def record_of(request: Request, results: Table) -> Table:
    """What config.toml says of the run: where it came from and what it reached."""
    return {
        "source": request.start.name,
        "labels": results["labels"],
        "seed": results["best_seed"],
        "accuracy": results["runs"][results["best_seed"]]["accuracy"],
        "headstart": version("headstart"),
        "torch": torch.__version__,
    }
