"""The sentences that are added to an index at a time: read from the text, encoded and written.

Letters: W words of a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.batches.rows import TextRow
from headstart.inspection.occurrence_files import ENDS, PLACES, SENTENCES, VECTORS, Committed, append, cut_to
from headstart.inspection.occurrence_text import Bounds, encoded
from headstart.pretrained import Pretrained


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence as the encoder reads it. bounds: (W, 2) of its words; kept: (W,), those with a letter or digit."""

    text: str
    row: TextRow
    bounds: Bounds
    kept: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """Some sentences that follow each other. read: with those that have no word, or are too long."""

    sentences: list[ReadSentence]
    occurrences: int
    read: int
    too_long: int
    ended: bool

    def after(self, done: Committed) -> Committed:
        """What is committed when this part is."""
        return Committed(
            read=done.read + self.read,
            sentences=done.sentences + len(self.sentences),
            sentence_bytes=done.sentence_bytes + sum(len(one.text.encode()) for one in self.sentences),
            occurrences=done.occurrences + self.occurrences,
            too_long=done.too_long + self.too_long,
            ended=self.ended,
        )


def next_part(pretrained: Pretrained, text: Iterator[str], most: int) -> Part:
    """Sentences until they have `most` occurrences."""
    found: list[ReadSentence] = []
    occurrences = read = too_long = 0
    for sentence in text:
        read += 1
        row, bounds = encoded(pretrained, sentence)
        kept = np.array([any(map(str.isalnum, sentence[start:end])) for start, end in bounds], dtype=bool)
        too_long += row.cut
        if row.cut or not kept.any():
            continue
        found.append(ReadSentence(sentence, row, bounds, kept))
        occurrences += int(kept.sum())
        if occurrences >= most:
            return Part(found, occurrences, read, too_long, ended=False)
    return Part(found, occurrences, read, too_long, ended=True)


def write_part(folder: Path, pretrained: Pretrained, layer: int, done: Committed, part: Part) -> Iterator[float]:
    """Append a part to the files behind what is committed; yields which share of it is encoded."""
    cut_to(folder, done, pretrained.encoder.shape[1])
    bounds = [one.bounds[one.kept] for one in part.sentences]
    numbers = np.repeat(np.arange(len(bounds)) + done.sentences, [len(own) for own in bounds])
    places = np.column_stack([numbers, np.concatenate(bounds)]) if bounds else np.empty((0, 3))
    texts = [one.text.encode() for one in part.sentences]
    ends = done.sentence_bytes + np.cumsum([len(text) for text in texts])
    append(folder / PLACES, places.astype("<u4").tobytes())
    append(folder / SENTENCES, b"".join(texts))
    append(folder / ENDS, ends.astype("<u8").tobytes())
    # A vector that an encoder has kept from earlier batches may differ in its last bit from one computed anew.
    pretrained.encoder.clear_cache()
    kept = iter(part.sentences)
    encoded = 0
    with (folder / VECTORS).open("ab") as file:
        for n, ready in pretrained.stream_rows((one.row for one in part.sentences), layer):
            for vectors in ready:
                file.write(vectors[0, next(kept).kept].astype("<f2").tobytes())
            encoded += n
            yield encoded / len(part.sentences)
        file.flush()
        os.fsync(file.fileno())
