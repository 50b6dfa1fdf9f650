"""What is measured: five things that grow, and for each the lines of its two charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.growth.text import Texts

TOKENS = 4_096
"""In a batch, whatever the length of its sequences."""
LENGTHS = (32, 64, 128, 256, 512)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
BATCH_LENGTH = 64
CORPORA = (1, 2, 4)
VOCABULARIES = (10_000, 50_000, 100_000, 200_000, 400_000, 800_000)
STREAMS = (10_000, 100_000, 1_000_000)
KINDS = {"bert": "BERT mini", "elmo": "ELMo mini"}
WORKS = {"encode": "encoding", "train": "training"}

SERIES = {
    "length": "tokens in a sequence",
    "batch": "sequences of 64 tokens in a batch",
    "corpus": "MB of text",
    "vocabulary": "words in the vocabulary",
    "stream": "sentences in the stream",
}
"""By name, what grows."""


@dataclass(frozen=True, slots=True)
class Case:
    """One point of one line: the work that a process of its own does for it."""

    series: str
    line: str
    x: float
    work: str
    options: Mapping[str, Any] = field(default_factory=dict)


def cases(series: str, texts: Texts, quick: bool) -> list[Case]:
    """quick: the ends of each range, and less of what takes long."""
    return {
        "length": lengths,
        "batch": batches,
        "corpus": corpora,
        "vocabulary": vocabularies,
        "stream": streams,
    }[series](texts, quick)


def lengths(texts: Texts, quick: bool) -> list[Case]:
    return [
        Case("length", f"{KINDS[kind]}, {WORKS[work]}", T, work, {**on(texts, kind), "B": TOKENS // T, "T": T})
        for work in WORKS
        for kind in KINDS
        for T in thinned(LENGTHS, quick)
    ]


def batches(texts: Texts, quick: bool) -> list[Case]:
    return [
        Case("batch", f"{KINDS[kind]}, {WORKS[work]}", B, work, {**on(texts, kind), "B": B, "T": BATCH_LENGTH})
        for work in WORKS
        for kind in KINDS
        for B in thinned(BATCHES, quick)
    ]


def corpora(texts: Texts, quick: bool) -> list[Case]:
    """The second work reads the shards that the first has left in the cache."""
    found = []
    for times in thinned(CORPORA, quick):
        path = texts.corpus(times)
        options = {"text": str(path), "tokenizer": str(texts.tokenizer()), "cache": str(texts.folder / "cache")}
        megabytes = path.stat().st_size / 1e6
        found += [
            Case("corpus", "tokenising to shards", megabytes, "tokenise", options),
            Case("corpus", "word vectors, one pass", megabytes, "static", options),
        ]
    return found


def vocabularies(texts: Texts, quick: bool) -> list[Case]:
    return [
        Case("vocabulary", "ELMo mini, training", V, "train", {**on(texts, "elmo"), "B": 32, "T": 64, "V": V})
        for V in thinned(VOCABULARIES, quick)
    ]


def streams(texts: Texts, quick: bool) -> list[Case]:
    counts = [n // 20 if quick else n for n in STREAMS]
    options = {"sentences": str(texts.sentences())}
    return [Case("stream", "BERT tiny, encoding", n, "stream", {**options, "n": n}) for n in counts]


def on(texts: Texts, kind: str) -> dict[str, Any]:
    return {"kind": kind, "words": str(texts.words())}


def thinned(values: tuple[int, ...], quick: bool) -> tuple[int, ...]:
    return (values[0], values[len(values) // 2], values[-1]) if quick else values
