"""The second verb: what an encoder learned from text, carried over to a labelled task."""

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
from headstart.config import Table, cache_home
from headstart.errors import ConfigError
from headstart.metrics import mean
from headstart.progress import Notice, Progress, result_of
from headstart.report.plots import mix_weights, mixes_of
from headstart.report.results import TransferResults
from headstart.tasks.data import TaskData, check_task, read_task
from headstart.tasks.examples import Examples, ExamplesConfig, draw
from headstart.training.run import RunDirectory
from headstart.transfer.card import task_card
from headstart.transfer.fit import Fitted, gather_features, measure_forgetting, transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.forgetting import Forgetting
from headstart.transfer.start import SCRATCH, Start, open_start, settings_for
from headstart.transfer.task_model import TransferConfig
from headstart.weights.sources import Source, labelled_file


@dataclass(frozen=True, slots=True)
class SeedDone:
    """One of the seeds is through."""

    seed: int
    fitted: Fitted
    left: int


@dataclass(frozen=True, slots=True)
class Transferred:
    """All seeds are through, and the best one is in the run directory."""

    out: Path
    results: Table


TransferEvent = Progress | FitStep | Notice | SeedDone | Transferred


def transfer(
    task: str = "sentiment",
    *,
    source: Source = SCRATCH,
    how: str = "frozen",
    train: str | Path,
    dev: str | Path | None = None,
    out: str | Path,
    labels: int | None = None,
    seeds: int = 3,
    examples: ExamplesConfig | None = None,
    settings: Mapping[str, Any] | None = None,
    held_out: Sequence[str] | None = None,
    cache: str | Path | None = None,
) -> Generator[TransferEvent, None, None]:
    """Carry `source` over to labelled examples, once per seed; the best seed's classifier is left in the folder `out`.

    `source` is scratch or whatever `headstart.load` opens; `train` and `dev` are files, or names of the catalogue.
    `settings` is a table such as {"network": {"cell": "gru"}}. Without `dev` a tenth of the examples is held out.
    Fine-tuning is followed by a look at what the encoder forgot, on its own held-out text or on `held_out`.
    """
    check_task(task)
    if seeds < 1:
        raise ConfigError(f"--seeds is a count of one or more; got {seeds}.")
    home = Path(cache) if cache else cache_home()
    start = open_start(source, home)
    config = settings_for(start, how, settings)
    train, dev = result_of(labelled_file(train, home)), None if dev is None else result_of(labelled_file(dev, home))
    data = read_task(train, dev, examples or ExamplesConfig())
    draws = [draw(data.train, labels, seed) for seed in range(seeds)]
    RunDirectory.create(Path(out))
    request = Request(start, config, data, draws, Path(out), held_out, home)
    return run_transfer(request)


@dataclass(frozen=True, slots=True)
class Request:
    start: Start
    config: TransferConfig
    data: TaskData
    draws: list[Examples]
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
            wanted = [text for part in (*request.draws, data.dev) for text in part.texts]
            features = yield from gather_features(request.start, wanted, request.config, request.cache)
        runs: list[Fitted] = []
        for seed, part in enumerate(request.draws):
            fitted = yield from transfer_once(
                request.start, request.config, part, data.dev, data.names, seed=seed, features=features
            )
            runs.append(fitted)
            yield SeedDone(seed, fitted, len(request.draws) - seed - 1)
        forgotten = yield from measure_forgetting(
            request.start, best_of(runs), held_out=request.held_out, cache=request.cache
        )
        results = results_of(request, runs, forgotten)
        best_of(runs).classifier.save(request.out, record_of(request, results))
        write_text(request.out / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        typed = TransferResults.from_json(results)
        run.write_card(task_card(typed))
        picture = mix_weights(mixes_of(f"{typed.source}, {typed.how}", [run.mix for run in typed.runs]))
        if picture is not None:
            write_text(request.out / "mix.svg", picture)
    finally:
        run.remove_if_empty()
    yield Transferred(request.out, results)


def best_of(runs: list[Fitted]) -> Fitted:
    return max(runs, key=lambda fitted: fitted.scores["accuracy"])


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
