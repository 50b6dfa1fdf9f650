"""Fine-tuning one pretrained BERT on SST-2: ours against transformers' Trainer, same labels, epochs, batch and rate.

    python -m bench.fine_tuning --data DATA [--model minilm] [--epochs 2] [--batch 32] [--rate 5e-5] [--labels N]
                                [--seeds 1]

Prints each side's dev accuracy and time. Both keep the best of their looks at dev, one after each epoch.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch

from bench.measure import Side, Timed, in_turns
from bench.peers.trainer import ClassifierTrainer, Outcome, Settings, TrainerSide
from bench.samples import sst_dev, sst_train
from bench.works import SST_DEV, SST_TRAIN
from headstart.config import cache_home, overlay
from headstart.exporting import export
from headstart.progress import result_of
from headstart.tasks.base import Task
from headstart.tasks.classify import Classify
from headstart.tasks.examples import draw
from headstart.transfer.config import TransferConfig
from headstart.transfer.fit import transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import Start, open_start, settings_for

ALL = 1_000_000
"""More dev examples than there are."""


def our_config(
    task: Task[Any, Any], start: Start, settings: Settings, given: Mapping[str, Any] | None = None
) -> TransferConfig:
    """The defaults of `headstart transfer --how finetune`, but for what both sides share and what is given."""
    fitting: dict[str, Any] = {
        "epochs": float(settings.epochs),
        "batch": settings.batch,
        "encoder_rate": settings.rate,
        "min_steps": 1,
        "evaluations": settings.epochs,
        "evaluate_examples": ALL,
        "patience": settings.epochs,
    }
    shared = {"warmup": settings.warmup, "weight_decay": settings.weight_decay, "learning_rate": settings.head_rate}
    fitting |= {key: value for key, value in shared.items() if value is not None}
    return settings_for(type(task), start, "finetune", overlay({"fitting": fitting}, given or {}))


def ours(
    start: Start, task: Task[Any, Any], train: Sequence[Any], dev: Sequence[Any], settings: Settings, seed: int
) -> Outcome:
    fitted = result_of(transfer_once(start, our_config(task, start, settings), task, train, dev, seed=seed))
    return Outcome(fitted.score, fitted.seconds)


def our_steps(start: Start, task: Task[Any, Any], train: Sequence[Any], config: TransferConfig) -> float:
    """Seconds that the steps of a fit without dev take, from the first one's beginning to the last one's end."""
    events = transfer_once(start, config, task, train, None, seed=0)
    *_, last = (event for event in events if isinstance(event, FitStep))
    return last.number / last.per_second


def step_rates(
    start: Start,
    task: Task[Any, Any],
    trainers: Mapping[str, TrainerSide[Any]],
    parts: Sequence[Sequence[Any]],
    settings: Settings,
    repeats: int,
    given: Mapping[str, Any] | None = None,
) -> dict[str, list[float]]:
    """Examples per second of the steps of "ours" and of each Trainer, by turns. parts: those of each turn."""
    config = our_config(task, start, settings, given)

    def turns(seconds: Callable[[Any], float], prepared: Sequence[Any]) -> Side:
        left = iter(zip(parts, prepared, strict=True))

        def turn() -> Timed:
            part, ready = next(left)
            return Timed(len(part), seconds(ready))

        return Side(turn)

    sides = {"ours": turns(lambda part: our_steps(start, task, part, config), parts)}
    for name, trainer in trainers.items():
        rows = [trainer.rows(part) for part in parts]
        sides[name] = turns(partial(trainer.step_seconds, settings=settings), rows)
    return in_turns(sides, repeats)


def compare(
    given: argparse.Namespace,
    task: Task[Any, Any],
    train: list[Any],
    dev: list[Any],
    side: Callable[[Path], TrainerSide[Any]],
) -> None:
    """Whole runs of both sides, seed by seed, and a line for each. side: the Trainer's, from a model's files."""
    settings = Settings(given.epochs, given.batch, given.rate)
    start = open_start(given.model)
    found: dict[str, list[Outcome]] = {"headstart": [], "transformers' Trainer": []}
    count = len(train) if given.labels is None else given.labels
    with tempfile.TemporaryDirectory(dir=cache_home()) as folder:
        theirs = side(result_of(export(given.model, "hf", Path(folder) / "hf")))
        for seed in range(given.seeds):
            part = draw(task, train, count, seed)
            found["headstart"].append(ours(start, task, part, dev, settings, seed))
            found["transformers' Trainer"].append(theirs.whole_run(part, dev, settings, seed))
    print(f"{count:,} labelled {task.many}, {len(dev):,} of dev; {settings}; {torch.get_num_threads()} threads")
    for name, outcomes in found.items():
        scores = ", ".join(f"{100 * outcome.score:.2f}" for outcome in outcomes)
        seconds = median(outcome.seconds for outcome in outcomes)
        print(
            f"{name:22} dev {task.metric.title} {100 * mean(outcome.score for outcome in outcomes):.2f} % ({scores}), "
            f"{seconds:,.0f} s, {given.epochs * count / seconds:.1f} {task.many}/s"
        )


def parsed(program: str, description: str | None, needs: str, epochs: int) -> argparse.Namespace:
    """needs: the files under --data that are read."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {program}", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {needs}")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--labels", type=int, help="so many of the labelled examples, by default all")
    parser.add_argument("--seeds", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    given = parsed("bench.fine_tuning", __doc__, f"{SST_TRAIN} and {SST_DEV}", epochs=2)
    train, dev = sst_train(given.data), sst_dev(given.data)
    task = Classify.learn(train)
    compare(given, task, train, dev, lambda files: ClassifierTrainer(files, task))


if __name__ == "__main__":
    main()
