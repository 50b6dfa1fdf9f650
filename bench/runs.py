"""One whole run of either side, Headstart and transformers' Trainer: trained once, then scored once on dev.

Both have the same examples, epochs, batch, rate (also of the new head), warm-up and weight decay; no side looks at dev
before its last step.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.fine_tuning import our_config
from bench.peers.trainer import Run, Settings, TrainerSide
from bench.samples import evenly
from headstart.config import cache_home
from headstart.exporting import export
from headstart.progress import result_of
from headstart.tasks.base import Task
from headstart.tasks.examples import draw
from headstart.transfer.config import TransferConfig
from headstart.transfer.fit import transfer_once
from headstart.transfer.start import Start, open_start

WARMUP, WEIGHT_DECAY = 0.1, 0.01
OURS = "headstart"
Scored = Callable[[Sequence[Any], Sequence[Any]], dict[str, float]]
"""Dev examples and our answers to them -> scores by name."""


def our_run(
    start: Start, task: Task[Any, Any], train: Sequence[Any], dev: Sequence[Any], config: TransferConfig, seed: int,
    scored: Scored,
) -> Run:  # fmt: skip
    """Without dev while it trains, so that the last step is kept and dev is read once."""
    began = time.monotonic()
    fitted = result_of(transfer_once(start, config, task, train, None, seed=seed))
    trained = time.monotonic()
    scores = scored(dev, fitted.model.answers(dev).answers)
    return Run(scores, trained - began, time.monotonic() - trained)


def compare(
    given: argparse.Namespace,
    task: Task[Any, Any],
    train: list[Any],
    dev: list[Any],
    sides: Mapping[str, Callable[[Path], TrainerSide[Any]]],
    our_settings: Mapping[str, Any],
    scored: Scored,
) -> dict[str, Run]:
    """Both sides' runs, and a table of them. sides: the Trainers by name, each from a model's files."""
    train, dev = draw(task, train, min(given.count, len(train)), given.seed), evenly(dev, given.dev)
    rate = given.rate if given.head_rate is None else given.head_rate
    settings = Settings(given.epochs, given.batch, given.rate, WARMUP, WEIGHT_DECAY, rate)
    print(f"{len(train):,} {task.many}, {len(dev):,} of dev; {settings}; {torch.get_num_threads()} threads", flush=True)
    start = open_start(given.model)
    runs = {OURS: our_run(start, task, train, dev, our_config(task, start, settings, our_settings), given.seed, scored)}
    cache_home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_home()) as folder:
        files = result_of(export(given.model, "hf", Path(folder) / "hf"))
        for name, side in sides.items():
            runs[name] = side(files).run(train, dev, settings, given.seed)
    print(table(runs, len(train) * given.epochs, task.many))
    return runs


def table(runs: Mapping[str, Run], trained: int, many: str) -> str:
    """trained: examples that were trained on, each as often as there were epochs."""
    ours = runs[OURS]
    width = max(map(len, runs))
    titles = [f"dev {name}" for name in ours.scores]
    columns = [*titles, "training", "evaluation", "both", f"{many}/s in training"]
    lines = ["  ".join([" " * width, *(f"{column:>14}" for column in columns), "times as long as ours"])]
    for name, run in runs.items():
        cells = [f"{100 * score:.2f} %" for score in run.scores.values()]
        cells += [f"{seconds:,.1f} s" for seconds in (run.training, run.evaluation, run.seconds)]
        cells += [f"{trained / run.training:,.1f}"]
        ratios = [("training", run.training / ours.training), ("evaluation", run.evaluation / ours.evaluation)]
        ratios += [("both", run.seconds / ours.seconds)]
        told = "" if run is ours else ", ".join(f"{what} {ratio:.2f}" for what, ratio in ratios)
        placed = [f"{cell:>{max(14, len(column))}}" for cell, column in zip(cells, columns, strict=True)]
        lines.append("  ".join([f"{name:<{width}}", *placed, told]).rstrip())
    return "\n".join(lines)


def options(
    program: str, description: str | None, needs: str, many: str, count: int, batch: int
) -> argparse.ArgumentParser:
    """needs: the files under --data that are read; many: what the examples are called; count: how many by default."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {needs}")
    parser.add_argument("--model", default="minilm")
    parser.add_argument(f"--{many}", type=int, default=count, dest="count", help="drawn from the training file")
    parser.add_argument("--dev", type=int, help="so many of dev, evenly spaced; by default all")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--head-rate", type=float, help="of our new head, by default --rate, as the Trainer has it")
    parser.add_argument("--seed", type=int, default=0)
    return parser
