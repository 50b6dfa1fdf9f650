"""Text files as sentences whose words an encoder gives vectors, and one word marked in a sentence.

Letters: W words of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.batches.rows import TextRow, text_row
from headstart.errors import DataError
from headstart.pretrained import Layers, Pretrained, Vectors, word_bounds
from headstart.text.documents import TextConfig, read_blocks
from headstart.text.sentences import sentence_spans

MARK = re.compile(r"\[([^\[\]]*)\]")
Bounds = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MarkedWord:
    """One word of a sentence, sentence[start:end]."""

    sentence: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.sentence[self.start : self.end]

    def __str__(self) -> str:
        return f"{self.sentence[: self.start]}[{self.word}]{self.sentence[self.end :]}"


def marked_word(text: str) -> MarkedWord | None:
    """The word in brackets of "They staged a [play] in town"; None: no brackets."""
    marks = list(MARK.finditer(text))
    if not marks:
        return None
    mark = marks[0]
    if len(marks) > 1 or not mark[1].strip():
        raise DataError(f"Mark one word of the sentence, as in 'They staged a [play]'; got '{text}'.")
    before, word = " ".join(f"{text[: mark.start()]}\0".split()).removesuffix("\0"), mark[1].strip()
    after = " ".join(f"\0{text[mark.end() :]}".split()).removeprefix("\0")
    return MarkedWord(f"{before}{word}{after}", len(before), len(before) + len(word))


def vector_of(pretrained: Pretrained, marked: MarkedWord, layer: Layers) -> Vectors:
    """The vector of a marked word in its sentence, (D,). layer: "top" or a number."""
    row, bounds = encoded(pretrained, marked.sentence)
    found = np.flatnonzero((bounds[:, 0] < marked.end) & (bounds[:, 1] > marked.start))
    if len(found) != 1 or tuple(bounds[found[0]]) != (marked.start, marked.end):
        words = ", ".join(f"'{marked.sentence[start:end]}'" for start, end in bounds[found])
        raise DataError(
            f"'[{marked.word}]' in '{marked}' is not one word as {pretrained.name or pretrained.kind} reads it "
            f"({words or 'it has no word there'}); mark one word."
        )
    if row.cut:
        raise DataError(f"'{marked}' is longer than what this {pretrained.encoder.title} reads. Shorten it.")
    vector: Vectors = pretrained.represent([marked.sentence], layers=layer)[0][0, found[0]]
    return vector


def encoded(pretrained: Pretrained, sentence: str) -> tuple[TextRow, Bounds]:
    """A sentence as the encoder reads it, and where each of its words begins and ends: (W, 2)."""
    encoder, tokenizer = pretrained.encoder, pretrained.tokenizer
    row = text_row(encoder, tokenizer, sentence, encoder.room)
    return row, np.array(list(word_bounds(tokenizer.encode(sentence))), np.int64).reshape(-1, 2)


def read_sentences(
    paths: Sequence[Path], config: TextConfig, on_bytes: Callable[[int], None] | None = None
) -> Iterator[str]:
    """All sentences of a text in order. on_bytes: as in `read_blocks`."""
    for block in read_blocks(paths, config, on_bytes):
        yield from sentences_of(block.text, config)


def sentences_of(text: str, config: TextConfig) -> Iterator[str]:
    """The sentences of a block, with single spaces."""
    for start, end in sentence_spans(text, config.lines_are_sentences):
        yield " ".join(text[start:end].split())
