"""The demo: a comparison on film reviews, with text, labelled examples and a BERT that are downloaded."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.atomic import write_text
from headstart.comparison.compare import CompareEvent, compare
from headstart.config import cache_home
from headstart.report.results import Comparison
from headstart.weights.fetching import fetch

LABELS = (50, 200, 1000)
SEEDS = 3
PRETRAINING_SECONDS = 140.0
DEV_SENTENCES = 500
DOWNLOADED = "minilm"
# In so few minutes each entry of a small vocabulary is seen more often.
SETTINGS: dict[str, Any] = {
    "pretrain.text.one_per_line": True,
    "pretrain.elmo.tokenizer.size": 10_000,
    "pretrain.bert.tokenizer.size": 8_000,
    # Evaluating on dev more often would take as long as learning from so few examples.
    "transfer.fitting.evaluations": 5,
    "transfer.fitting.min_steps": 120,
    "transfer.fitting.epochs": 4.0,
    "rows.elmo-finetune.fitting.min_steps": 80,
    "rows.elmo-finetune.fitting.epochs": 2.0,
    # A step of the downloaded encoder takes as long as ten of the others.
    f"rows.bert-finetune:{DOWNLOADED}.fitting.batch": 16,
    f"rows.bert-finetune:{DOWNLOADED}.fitting.min_steps": 40,
    f"rows.bert-finetune:{DOWNLOADED}.fitting.epochs": 1.0,
    f"rows.bert-finetune:{DOWNLOADED}.fitting.evaluations": 2,
    f"rows.bert-finetune:{DOWNLOADED}.fitting.evaluate_examples": 100,
}


@dataclass(frozen=True, slots=True)
class DemoFiles:
    """What is made of the download: reviews to pretrain on, labelled sentences to train on and to evaluate on."""

    text: Path
    train: Path
    dev: Path


def demo(
    out: Path, seconds: float = PRETRAINING_SECONDS, seeds: int = SEEDS, cache: Path | None = None
) -> Generator[CompareEvent, None, Comparison]:
    """Fetch reviews and a BERT; compare them on labelled sentences with encoders pretrained on the reviews."""
    cache = cache or cache_home()
    reviews = yield from fetch("imdb", cache)
    sentences = yield from fetch("rotten-tomatoes", cache)
    yield from fetch(DOWNLOADED, cache)
    files = write_files(reviews / "imdb.csv", sentences / "rotten-tomatoes.csv", out / "data")
    return (
        yield from compare(
            "sentiment",
            train=files.train,
            dev=files.dev,
            text=files.text,
            with_=DOWNLOADED,
            labels=LABELS,
            seeds=seeds,
            budget=seconds,
            settings=SETTINGS,
            out=out / "comparison",
            cache=cache,
        )
    )


def write_files(long: Path, short: Path, folder: Path) -> DemoFiles:
    """The text of the long reviews, a line each, and the labelled short ones in two parts."""
    files = DemoFiles(folder / "reviews.txt", folder / "train.csv", folder / "dev.csv")
    reviews = [" ".join(text.replace("<br />", " ").split()) for text, _ in read_examples(long)]
    sentences = read_examples(short)
    # The file lists one label, then the other: every so many-th line holds out the same share of both.
    step = len(sentences) // DEV_SENTENCES
    write_text(files.text, "\n".join(reviews) + "\n")
    write_examples(files.dev, sentences[::step])
    write_examples(files.train, [pair for number, pair in enumerate(sentences) if number % step])
    return files


def read_examples(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["label"]) for row in csv.DictReader(file)]


def write_examples(path: Path, pairs: list[tuple[str, str]]) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([("text", "label"), *pairs])
    write_text(path, buffer.getvalue())
