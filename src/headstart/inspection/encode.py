"""The vectors of every line of a text in a .npy file, written as they are computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headstart.atomic import PARTIAL
from headstart.batches.rows import TextRow, text_row
from headstart.config import pick
from headstart.errors import ConfigError, DataError
from headstart.pretrained import Layers, Pretrained, Vectors, chosen_layers
from headstart.progress import Progress
from headstart.text.lines import Lines
from headstart.weights.sources import Source, open_source

SUFFIX, LENGTHS = ".npy", ".lengths.npy"
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Encoded:
    """A finished file. lengths: with a row per word, the file with the number of words of every text."""

    path: Path
    shape: tuple[int, ...]
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
    pool: str = "mean",
    precision: str = "float32",
    field: str | None = None,
) -> Generator[Progress, None, Encoded]:
    """Write the vectors of every line of `text` into the new file `out`, in constant memory.

    pool: "mean" of the words' vectors or the sequence's "first" position: row i is line i, and zeros if the line is
    empty; "words": a row for each word, and how many each line has in a second file. layers: "top" or a number gives
    rows (D,), "all" or several give rows (K, D). text: - is standard input. field: the column of a table with the text.
    precision: float32, or int8, with which a BERT is faster and its vectors slightly rounded.
    """
    # Before a download: `encode_lines` would find the same mistakes after it.
    pick(POOLS, pool, "pool")
    check_out(Path(out), pool)
    lines = Lines(text, field)
    pretrained = yield from open_source(source, precision=precision)
    return (yield from encode_lines(pretrained, lines, Path(out), layers=layers, pool=pool))


def encode_lines(
    pretrained: Pretrained, lines: Lines, out: Path, *, layers: Layers = "top", pool: str = "mean"
) -> Generator[Progress, None, Encoded]:
    """`encode` with an encoder and lines that are open."""
    to_rows = pick(POOLS, pool, "pool")
    check_out(out, pool)
    rows = Rows(pretrained, lines, pool)
    K, D = len(chosen_layers(layers, pretrained.encoder)), pretrained.encoder.shape[1]
    one_layer = isinstance(layers, int) or layers == "top"
    lengths_path = lengths_of(out) if pool == "words" else None
    with ExitStack() as files:
        table = files.enter_context(GrowingArray(out, (D,) if one_layer else (K, D), np.float32))
        lengths = files.enter_context(GrowingArray(lengths_path, (), np.int64)) if lengths_path else None
        done = 0
        for encoded, ready in pretrained.stream_rows(rows, layers):
            for vectors in ready:
                n = vectors.shape[1]
                found = to_rows(vectors) if n else np.zeros((0 if lengths else 1, K, D), np.float32)
                table.add(found[:, 0] if one_layer else found)
                if lengths:
                    lengths.add(np.array([n]))
            done += encoded
            yield Progress("encoding", done, lines.expected(), "texts")
        if rows.empty == lines.count:
            raise lines.nothing_there()
        for array in filter(None, (lengths, table)):
            array.complete()
        for array in filter(None, (lengths, table)):
            array.put_in_place()
    return Encoded(out, table.shape, lines.count, rows.empty, rows.cut, lengths_path)


class Rows:
    """The lines of a text as input rows of an encoder; counts those that are empty or cut."""

    def __init__(self, pretrained: Pretrained, lines: Lines, pool: str) -> None:
        self.pretrained, self.lines, self.pool = pretrained, lines, pool
        self.empty, self.cut = 0, 0

    def __iter__(self) -> Iterator[TextRow]:
        encoder = self.pretrained.encoder
        for text in self.lines:
            row = text_row(encoder, self.pretrained.tokenizer, text, encoder.room)
            self.empty += not len(row.word_starts)
            self.cut += row.cut
            if row.cut and self.pool == "words":
                raise DataError(
                    f"{self.lines.where}: this text is longer than the {encoder.longest} pieces, marks included, "
                    f"that this {encoder.title} reads, so that some of its words would get no vector. Split it."
                )
            if self.pool == "first" and len(row.word_starts):
                row = replace(row, word_starts=np.zeros(1, np.int64))
            yield row


class GrowingArray:
    """A .npy file that grows by rows, under a temporary name until it is complete; otherwise it is removed."""

    def __init__(self, path: Path, row_shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        self.path = path
        self.shape: tuple[int, ...] = (0, *row_shape)
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._partial = path.with_name(f"{path.name}.{os.getpid()}{PARTIAL}")
        self._file: IO[bytes] | None = None

    def __enter__(self) -> GrowingArray:
        try:
            with reporting(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._partial.open("wb", BUFFER_BYTES)
                self._write_header()
        except BaseException:  # __exit__ runs only after __enter__ returned, and Ctrl-C may come before
            self.discard()
            raise
        return self

    def add(self, rows: NDArray[Any]) -> None:
        self.shape = (self.shape[0] + len(rows), *self.shape[1:])
        with reporting(self.path):
            self._opened.write(rows.astype(self._dtype, copy=False).tobytes())

    def complete(self) -> None:
        """Write the final number of rows into the header, and flush to disk."""
        with reporting(self.path):
            file = self._opened
            file.seek(0)
            self._write_header()
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def put_in_place(self) -> None:
        with reporting(self.path):
            os.replace(self._partial, self.path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.discard()

    def discard(self) -> None:
        """Close and remove the temporary file, if there is one."""
        if self._file is not None:
            with suppress(OSError):  # closing flushes the buffer, and the disk may be full
                self._file.close()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)

    def _write_header(self) -> None:
        # numpy pads the header, so that its length does not depend on the number of rows.
        described = {"descr": self._dtype.str, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(self._opened, described)

    @property
    def _opened(self) -> IO[bytes]:
        if self._file is None:
            raise RuntimeError("a GrowingArray is used inside its `with` block")
        return self._file


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn an OSError into a DataError of one sentence."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error.strerror}). Nothing was kept; make room there or give another --out."
        ) from error


def lengths_of(out: Path) -> Path:
    return out.with_name(out.name.removesuffix(SUFFIX) + LENGTHS)


def check_out(out: Path, pool: str) -> None:
    if out.suffix != SUFFIX:
        raise ConfigError(f"--out must be the name of a {SUFFIX} file; got {out}.")
    for path in [out, lengths_of(out)] if pool == "words" else [out]:
        if path.exists():
            raise ConfigError(f"{path}: is already there. Remove it, or give another --out.")
