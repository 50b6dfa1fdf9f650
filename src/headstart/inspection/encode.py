"""The vectors of every line of a text in a file, written as they are computed; a stopped run goes on where it was."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from headstart.batches.rows import TextRow, text_row
from headstart.config import Table
from headstart.encoders.base import Encoder
from headstart.encoders.kernels.memory import release_freed_memory
from headstart.errors import ConfigError, DataError
from headstart.inspection.unfinished import Unfinished, claimed, folder_of
from headstart.inspection.vector_files import VectorFile, file_of, lengths_of, pool_for
from headstart.pretrained import Layers, Pretrained, Vectors, chosen_layers
from headstart.progress import Notice, Progress
from headstart.text.lines import Lines
from headstart.transfer.features import tensors_digest
from headstart.weights.sources import Source, open_source

STRETCH = 1_024
"""Lines after which encoding can go on. Which lines are encoded together decides the last bits of their vectors, so
that no batch may reach across."""
STRETCHES_BETWEEN_TRIMS = 32


@dataclass(frozen=True, slots=True)
class Encoded:
    """A finished file. lengths: of a .npy with a row per word, the file with the number of words of every text."""

    path: Path
    shape: tuple[int, ...]
    """Of all vectors as one array; what a .npy file holds."""
    texts: int
    empty: int
    """Texts without a word: a row of zeros each or, with a row per word, no row."""
    cut: int
    """Texts longer than the encoder's input, whose middle was left out."""
    lengths: Path | None


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


def encode(
    source: Source,
    text: str | Path,
    out: str | Path,
    *,
    layers: Layers = "top",
    pool: str | None = None,
    precision: str = "float32",
    field: str | None = None,
) -> Generator[Progress | Notice, None, Encoded]:
    """Write the vectors of every line of `text` into the new file `out`, .npy, .h5 or .parquet, in constant memory.

    pool: "mean" of the words' vectors or the sequence's "first" position: row i is line i, and zeros if the line is
    empty; "words": a row for each word, and how many each line has in a second file. By default mean; .h5 has ELMo's
    layout, which is of words. layers: "top" or a number gives rows (D,), "all" or several give rows (K, D). text: - is
    standard input. field: the column of a table with the text. precision: float32, or int8, with which a BERT is faster
    and its vectors slightly rounded. Stopped or killed, the same call goes on where it was.
    """
    out = Path(out)
    # Before a download: `encode_lines` would find the same mistakes after it.
    check_out(out, pool_for(file_of(out), pool))
    lines = Lines(text, field)
    pretrained = yield from open_source(source, precision=precision)
    return (yield from encode_lines(pretrained, lines, out, layers=layers, pool=pool))


def encode_lines(
    pretrained: Pretrained, lines: Lines, out: Path, *, layers: Layers = "top", pool: str | None = None
) -> Generator[Progress | Notice, None, Encoded]:
    """`encode` with an encoder and lines that are open."""
    file = file_of(out)
    pool = pool_for(file, pool)
    check_out(out, pool)
    settings = settings_of(pretrained, file, layers, pool)
    places = file.places(out, pool)
    with claimed(out, settings, main=list(places)[-1], resumable=lines.can_be_read_again) as part:
        if not part.reached.whole:
            yield from fill(part, Rows(pretrained, lines, part, file, pool), layers)
            if part.reached.empty == part.reached.lines:
                part.discard()
                raise lines.nothing_there()
            part.complete()
            for done in file.assemble(part):
                yield Progress("writing", done, part.reached.lines, "texts")
        reached, shape = part.reached, (part.reached.rows, *settings["row"])
        part.put_in_place(places)
    lengths = lengths_of(out) if out.suffix == ".npy" and pool == "words" else None
    return Encoded(out, shape, reached.lines, reached.empty, reached.cut, lengths)


def settings_of(pretrained: Pretrained, file: VectorFile, layers: Layers, pool: str) -> Table:
    """Everything but the text that decides what is written."""
    numbers = chosen_layers(layers, pretrained.encoder)
    D = pretrained.encoder.shape[1]
    one_layer = isinstance(layers, int) or layers == "top"
    return {
        "format": file.name,
        "encoder": f"{fingerprint(pretrained.encoder)} {pretrained.tokenizer.fingerprint}",
        "layers": numbers,
        "pool": pool,
        "row": [D] if one_layer else [len(numbers), D],
        "texts": file.keeps_texts,
    }


def fingerprint(encoder: Encoder) -> str:
    """SHA-256 of the encoder. An int8 encoder has no `state_dict`, and some of its tensors only its kernels can read;
    those follow from the others."""
    tensors = {**dict(encoder.named_parameters()), **dict(encoder.named_buffers())}
    return tensors_digest(encoder, {name: tensor for name, tensor in tensors.items() if not tensor.is_mkldnn})


def fill(part: Unfinished, rows: Rows, layers: Layers) -> Generator[Progress | Notice, None, None]:
    """Encode the lines that are still to come."""
    pretrained, lines = rows.pretrained, rows.lines
    one_layer = len(part.vectors.row_shape) == 1
    K, D = len(part.settings["layers"]), part.vectors.row_shape[-1]
    part.pass_over(rows.texts)
    before = part.reached.lines
    if before:
        yield Notice(f"Going on after line {before:,}, where this was stopped.")
    to_rows, empty = POOLS[part.settings["pool"]], np.zeros((0 if part.lengths is not None else 1, K, D), np.float32)
    coming = iter(rows)
    for number in itertools.count(1):
        done = part.reached.lines
        pretrained.encoder.clear_cache()
        for encoded, ready in pretrained.stream_rows(islice(coming, STRETCH), layers):
            for vectors in ready:
                words = vectors.shape[1]
                found = to_rows(vectors) if words else empty
                rows.finished(found[:, 0] if one_layer else found, words)
            done += encoded
            # Of what is left to do, so that the pace and the time left are those of this run.
            yield Progress("encoding", done - before, max(0, lines.expected() - before), "texts")
        if done == part.reached.lines:
            return
        part.pause()
        if number % STRETCHES_BETWEEN_TRIMS == 0:
            release_freed_memory()


class Rows:
    """The lines of a text that are still to come, as input rows of an encoder."""

    def __init__(self, pretrained: Pretrained, lines: Lines, part: Unfinished, file: VectorFile, pool: str) -> None:
        self.pretrained, self.lines, self.part, self.file, self.pool = pretrained, lines, part, file, pool
        self.texts = iter(lines)
        self._ahead: deque[tuple[str, bool]] = deque()
        """Lines whose vectors are still to come, and whether each was cut."""

    def __iter__(self) -> Iterator[TextRow]:
        encoder = self.pretrained.encoder
        for text in self.texts:
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

    def finished(self, rows: Vectors, words: int) -> None:
        """Hand on the rows of the line that was given first of those still to come."""
        text, cut = self._ahead.popleft()
        kept = self.file.shown(self.pretrained, text, self.pool)
        self.part.add(rows, words=words, text=text, kept=kept, cut=cut)


def check_out(out: Path, pool: str) -> None:
    """Nothing is written over; a run that was killed at its very end may have put a second file in place."""
    file_of(out).check()
    for path in file_of(out).places(out, pool).values():
        if path.exists() and (path == out or not folder_of(out).exists()):
            raise ConfigError(f"{path}: is already there. Remove it, or give another --out.")
