"""Fine-tuning one pretrained BERT on SST-2: ours against transformers' Trainer, same labels, epochs, batch and rate.

    python -m bench.fine_tuning --data DATA [--model minilm] [--epochs 2] [--batch 32] [--rate 5e-5] [--seeds 1]

Prints each side's dev accuracy and time. Both keep the best of their looks at dev, one after each epoch.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from bench.samples import sst_dev, sst_train
from headstart.config import cache_home
from headstart.exporting import export
from headstart.progress import result_of
from headstart.tasks.examples import Examples
from headstart.transfer.fit import transfer_once
from headstart.transfer.fitting import FitStep
from headstart.transfer.start import Start, open_start, settings_for
from headstart.transfer.task_model import TransferConfig

Row = dict[str, Any]
"""One example as the Trainer reads it."""


@dataclass(frozen=True, slots=True)
class Settings:
    epochs: int
    batch: int
    rate: float


@dataclass(frozen=True, slots=True)
class Outcome:
    accuracy: float
    seconds: float


def our_config(start: Start, settings: Settings) -> TransferConfig:
    """The defaults of `headstart transfer --how finetune`, but for what both sides share."""
    fitting = {
        "epochs": float(settings.epochs),
        "batch": settings.batch,
        "encoder_rate": settings.rate,
        "min_steps": 1,
        "evaluations": settings.epochs,
        "patience": settings.epochs,
    }
    return settings_for(start, "finetune", {"fitting": fitting})


def ours(start: Start, train: Examples, dev: Examples, settings: Settings, seed: int) -> Outcome:
    names = sorted(set(train.labels))
    fitted = result_of(transfer_once(start, our_config(start, settings), train, dev, names, seed=seed))
    return Outcome(fitted.scores["accuracy"], fitted.seconds)


def our_steps(start: Start, train: Examples, settings: Settings) -> float:
    """Seconds that the steps of a fit without dev take, from the first one's beginning to the last one's end."""
    names = sorted(set(train.labels))
    events = transfer_once(start, our_config(start, settings), train, None, names, seed=0)
    *_, last = (event for event in events if isinstance(event, FitStep))
    return last.number / last.per_second


class StepClock(TrainerCallback):
    """Seconds from the first step's beginning to the last one's end."""

    seconds = 0.0
    began = 0.0

    def on_train_begin(self, *state: object, **more: object) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, *state: object, **more: object) -> None:
        self.seconds = time.perf_counter() - self.began


def tokenised_rows(tokenizer: Any, examples: Examples) -> list[Row]:
    names = sorted(set(examples.labels))
    encoded = tokenizer(examples.texts, truncation=True)
    return [
        {**{key: encoded[key][i] for key in encoded}, "labels": names.index(label)}
        for i, label in enumerate(examples.labels)
    ]


def trainer_of(
    files: Path, train: list[Row], settings: Settings, seed: int, dev: list[Row] | None = None
) -> tuple[Trainer, StepClock]:
    """As its documentation shows: AutoModelForSequenceClassification, padding by batch, Trainer's own defaults."""
    set_seed(seed)
    classes = len({row["labels"] for row in train})
    clock = StepClock()
    arguments = TrainingArguments(
        output_dir=str(files.parent / "trainer"),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=64,
        learning_rate=settings.rate,
        eval_strategy="no" if dev is None else "epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
        seed=seed,
    )
    trainer = Trainer(
        model=AutoModelForSequenceClassification.from_pretrained(files, num_labels=classes),
        args=arguments,
        train_dataset=train,
        eval_dataset=dev,
        data_collator=DataCollatorWithPadding(AutoTokenizer.from_pretrained(files)),
        compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())},
        callbacks=[clock],
    )
    return trainer, clock


def theirs(files: Path, train: Examples, dev: Examples, settings: Settings, seed: int) -> Outcome:
    began = time.monotonic()
    tokenizer = AutoTokenizer.from_pretrained(files)
    rows = tokenised_rows(tokenizer, train)
    trainer, _ = trainer_of(files, rows, settings, seed, dev=tokenised_rows(tokenizer, dev))
    trainer.train()
    seconds = time.monotonic() - began
    looks = [entry["eval_accuracy"] for entry in trainer.state.log_history if "eval_accuracy" in entry]
    return Outcome(max(looks), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fine_tuning", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds sst/train.txt and sst/dev.txt")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    settings = Settings(given.epochs, given.batch, given.rate)
    train, dev = sst_train(given.data), sst_dev(given.data)
    start = open_start(given.model)
    found: dict[str, list[Outcome]] = {"headstart": [], "transformers' Trainer": []}
    with tempfile.TemporaryDirectory(dir=cache_home()) as folder:
        files = result_of(export(given.model, "hf", Path(folder) / "hf"))
        for seed in range(given.seeds):
            found["headstart"].append(ours(start, train, dev, settings, seed))
            found["transformers' Trainer"].append(theirs(files, train, dev, settings, seed))
    print(f"{len(train):,} labels, {len(dev):,} dev sentences; {settings}; {torch.get_num_threads()} threads")
    for name, outcomes in found.items():
        accuracies = ", ".join(f"{100 * outcome.accuracy:.2f}" for outcome in outcomes)
        seconds = median(outcome.seconds for outcome in outcomes)
        rate = given.epochs * len(train) / seconds
        print(
            f"{name:22} dev accuracy {100 * mean(o.accuracy for o in outcomes):.2f} % ({accuracies}), "
            f"{seconds:,.0f} s, {rate:.1f} examples/s"
        )


if __name__ == "__main__":
    main()
