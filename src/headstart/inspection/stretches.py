"""The lines of a text in stretches that are encoded one by one, whoever encodes them."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from headstart.batches.rows import TextRow, text_row
from headstart.errors import DataError
from headstart.inspection.shards import Shard
from headstart.inspection.vector_files import VectorFile
from headstart.pretrained import Layers, Pretrained, Vectors
from headstart.text.lines import Lines
from headstart.transfer.features import spelled, with_length

STRETCH = 1_024
"""Lines after which encoding can go on. Which lines are encoded together decides the last bits of their vectors, so
that no batch may reach across."""


def mean_of_words(vectors: Vectors) -> Vectors:
    mean: Vectors = vectors.mean(axis=1)
    return mean[None]


def first_position(vectors: Vectors) -> Vectors:
    return vectors[:, 0][None]


def every_word(vectors: Vectors) -> Vectors:
    return vectors.transpose(1, 0, 2)


Pool = Callable[[Vectors], Vectors]
"""Vectors of a text with at least one word, (K, words, D) -> its rows of the file, (rows, K, D)."""
POOLS: dict[str, Pool] = {"mean": mean_of_words, "first": first_position, "words": every_word}


class Rows:
    """The lines of a text, read once from its beginning, as input rows of an encoder."""

    def __init__(self, pretrained: Pretrained, lines: Lines, file: VectorFile, pool: str, layers: Layers) -> None:
        self.pretrained, self.lines, self.file, self.pool, self.layers = pretrained, lines, file, pool, layers
        self.read = 0
        self._digest = hashlib.sha256()
        self._texts = iter(lines)
        self._next: str | None = None
        self._ahead: deque[tuple[str, bool]] = deque()
        """Lines whose vectors are still to come, and whether each was cut."""

    @property
    def digest(self) -> str:
        """Of the lines that were read."""
        return self._digest.hexdigest()

    def at_end(self) -> bool:
        if self._next is None:
            self._next = next(self._texts, None)
        return self._next is None

    def pass_over(self, lines: int) -> None:
        for _ in self._take(lines):
            pass

    def _take(self, most: int) -> Iterator[str]:
        for _ in range(most):
            if self.at_end() or self._next is None:
                return
            text, self._next = self._next, None
            self.read += 1
            self._digest.update(with_length(spelled(text)))
            yield text

    def stretch(self) -> Iterator[TextRow]:
        """The next lines, each tokenised when it is asked for."""
        encoder = self.pretrained.encoder
        for text in self._take(STRETCH):
            given = text.split() if self.file.splits_at_space else text
            row = text_row(encoder, self.pretrained.tokenizer, given, encoder.room)
            if row.cut and self.pool == "words":
                raise DataError(
                    f"{self.lines.where}: this text is longer than the {encoder.longest} pieces, marks included, "
                    f"that this {encoder.title} reads, so that some of its words would get no vector. Split it."
                )
            if self.pool == "first" and len(row.word_starts):
                row = replace(row, word_starts=np.zeros(1, np.int64))
            self._ahead.append((text, row.cut))
            yield row

    def encode_into(self, shard: Shard) -> Iterator[int]:
        """Encode the next stretch; yields how many lines each batch had."""
        one_layer = len(shard.vectors.row_shape) == 1
        K, D = len(shard.settings["layers"]), shard.vectors.row_shape[-1]
        to_rows, empty = POOLS[self.pool], np.zeros((0 if shard.lengths is not None else 1, K, D), np.float32)
        self.pretrained.encoder.clear_cache()
        for encoded, ready in self.pretrained.stream_rows(self.stretch(), self.layers):
            for vectors in ready:
                words = vectors.shape[1]
                rows = to_rows(vectors) if words else empty
                text, cut = self._ahead.popleft()
                kept = self.file.shown(self.pretrained, text, self.pool)
                shard.add(rows[:, 0] if one_layer else rows, words=words, kept=kept, cut=cut)
            yield encoded
