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
from statistics import mean

import numpy as np
import torch

from headstart.adapt import transfer_once
from headstart.config import cache_home
from headstart.exporting import export
from headstart.sources import result_of
from headstart.starts import Start, open_start, settings_for
from headstart.tasks.examples import Examples, ExamplesConfig, read_examples


@dataclass(frozen=True, slots=True)
class Settings:
    epochs: int
    batch: int
    rate: float


@dataclass(frozen=True, slots=True)
class Outcome:
    accuracy: float
    seconds: float


def ours(start: Start, train: Examples, dev: Examples, settings: Settings, seed: int) -> Outcome:
    """The defaults of `headstart transfer --how finetune`, but for what both sides share."""
    fitting = {
        "epochs": float(settings.epochs),
        "batch": settings.batch,
        "encoder_rate": settings.rate,
        "min_steps": 1,
        "evaluations": settings.epochs,
        "patience": settings.epochs,
    }
    config = settings_for(start, "finetune", {"fitting": fitting})
    fitted = result_of(transfer_once(start, config, train, dev, sorted(set(train.labels)), seed=seed))
    return Outcome(fitted.scores["accuracy"], fitted.seconds)


def theirs(folder: Path, train: Examples, dev: Examples, settings: Settings, seed: int) -> Outcome:
    """As its documentation shows: AutoModelForSequenceClassification, padding by batch, Trainer's own defaults."""
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    began = time.monotonic()
    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    names = sorted(set(train.labels))
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(names))

    def rows(examples: Examples) -> list[dict[str, object]]:
        encoded = tokenizer(examples.texts, truncation=True)
        return [
            {**{key: encoded[key][i] for key in encoded}, "labels": names.index(label)}
            for i, label in enumerate(examples.labels)
        ]

    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch,
            per_device_eval_batch_size=64,
            learning_rate=settings.rate,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(),
            seed=seed,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=rows(train),
            eval_dataset=rows(dev),
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())},
        )
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
    as_two = ExamplesConfig(labels_as=2)
    train, dev = (read_examples(given.data / "sst" / f"{name}.txt", as_two) for name in ("train", "dev"))
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
        seconds = float(np.median([outcome.seconds for outcome in outcomes]))
        rate = given.epochs * len(train) / seconds
        print(
            f"{name:22} dev accuracy {100 * mean(o.accuracy for o in outcomes):.2f} % ({accuracies}), "
            f"{seconds:,.0f} s, {rate:.1f} examples/s"
        )


if __name__ == "__main__":
    main()
