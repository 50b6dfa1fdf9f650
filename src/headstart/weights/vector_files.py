"""Files of word vectors in the formats of GloVe and word2vec: how to tell them apart, and how to write them.

- GloVe: on each line a word and its D numbers.
- word2vec text: the same after a header 'N D', the number of words and of dimensions.
- word2vec binary: the same header, then for each word the word, a space and D little-endian float32.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headstart.atomic import write_atomically
from headstart.encoders.static import Static
from headstart.errors import ConfigError, DataError
from headstart.pretrained import Pretrained
from headstart.text.formats import BOM
from headstart.text.tokenizer import WordTokenizer

GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
HEAD_BYTES = 1 << 20
SAMPLE_LINES = 100
WIDEST = 1 << 20  # more numbers than this in a line or a header are not a vector
HEADER = re.compile(rb"[ \t]*(\d{1,15})[ \t]+(\d{1,15})[ \t\r]*")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
FLOAT_BYTES = 4
ROWS = 2_048  # written at a time


@dataclass(frozen=True, slots=True)
class Layout:
    """The format of a file. start: bytes before the first vector; count: of words, according to the header if any."""

    binary: bool
    dim: int
    start: int
    count: int | None

    @property
    def first_line(self) -> int:
        return 1 if self.count is None else 2

    @property
    def reason(self) -> str:
        """Where `dim` comes from, for messages."""
        return "as most of the first lines have" if self.count is None else "as the header says"


def layout_of(path: Path) -> Layout:
    """Recognised by the first bytes of the file, whatever its name."""
    head = read_head(path)
    if not head.strip():
        raise DataError(f"{path}: the file is empty; wanted lines such as 'word number number ...'.")
    if head.startswith(ZIP):
        raise DataError(f"{path}: this is a zip archive; unpack it and give the file of vectors in it.")
    skipped = len(BOM) if head.startswith(BOM) else 0
    first, _, rest = head[skipped:].partition(b"\n")
    header = HEADER.fullmatch(first)
    if header is None:
        lines = sample_lines(head[skipped:])
        layout = Layout(False, usual_width(lines), skipped, None)
    else:
        count, dim = int(header[1]), int(header[2])
        lines = sample_lines(rest)
        layout = Layout(is_binary(rest, lines, dim), dim, skipped + len(first) + 1, count)
    if not 1 <= layout.dim <= WIDEST:
        raise DataError(
            f"{path}:1: this is not a file of word vectors: wanted 'word number number ...', or a header with the "
            f"number of words and of dimensions; got {excerpt(first)}."
        )
    if not layout.binary:
        check_lines(lines, layout, path)
    return layout


def read_head(path: Path) -> bytes:
    """The first bytes, decompressed; of a truncated gzip, as many as can be."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES) if head[:2] == GZIP else head
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error
    except zlib.error as error:
        raise DataError(
            f"{path}: damaged ({error}). Check it with gzip -t, and download or compress it again."
        ) from error


def sample_lines(text: bytes) -> list[bytes]:
    lines = text[:HEAD_BYTES].split(b"\n")
    if len(lines) > 1:
        lines.pop()  # empty, or cut off in the middle
    return list(islice((line for line in lines if line.strip()), SAMPLE_LINES))


def fields_of(line: bytes) -> list[bytes]:
    """The word and its numbers. A tab ends the word, which may then have spaces."""
    word, tab, numbers = line.partition(b"\t")
    return [word, *numbers.split()] if tab else line.split()


def usual_width(lines: list[bytes]) -> int:
    widths = Counter(len(fields_of(line)) - 1 for line in lines)
    return widths.most_common(1)[0][0] if widths else 0


def is_binary(body: bytes, lines: list[bytes], dim: int) -> bool:
    """Whether the first word is followed by float32. A first line that fits the header proves that it is text."""
    if lines and ends_in_numbers(lines[0], dim):
        return False
    raw = body.partition(b" ")[2][: FLOAT_BYTES * dim]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return any(character < " " and character not in "\t\r\n" for character in text)


def ends_in_numbers(line: bytes, dim: int) -> bool:
    fields = fields_of(line)
    return len(fields) > dim and all(map(is_float, fields[-dim:]))


def is_float(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def check_lines(lines: list[bytes], layout: Layout, path: Path) -> None:
    """If most lines are bad, the file is something else. The reader reports single bad lines."""
    bad = [number for number, line in enumerate(lines) if not ends_in_numbers(line, layout.dim)]
    if 2 * len(bad) > len(lines):
        raise DataError(
            f"{path}:{layout.first_line + bad[0]}: this is not a file of word vectors: wanted a word and {layout.dim} "
            f"numbers, {layout.reason}; got {excerpt(lines[bad[0]])}."
        )


def excerpt(line: bytes) -> str:
    return repr(line[:60].decode("utf-8", "replace"))


def write_word2vec(pretrained: Pretrained, path: Path, *, binary: bool = False) -> None:
    """word2vec text or binary, gzipped if the name ends in .gz. Special tokens are written like words."""
    words, vectors = writable(pretrained, binary)
    records = binary_records(words, vectors) if binary else text_records(words, vectors)
    write_records(path, f"{len(words)} {vectors.shape[1]}\n".encode(), records)


def write_glove(pretrained: Pretrained, path: Path) -> None:
    """GloVe text, gzipped if the name ends in .gz. Special tokens are written like words."""
    words, vectors = writable(pretrained, binary=False)
    write_records(path, b"", text_records(words, vectors))


def writable(pretrained: Pretrained, binary: bool) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Words and vectors, checked so that a reader gets back the same ones."""
    encoder, tokenizer = pretrained.encoder, pretrained.tokenizer
    if not isinstance(encoder, Static) or not isinstance(tokenizer, WordTokenizer):
        raise ConfigError(
            f"Only word vectors can be written as word2vec or GloVe; this is a {pretrained.kind}, whose vectors depend "
            f"on the sentence."
        )
    words = tokenizer.vocabulary.words
    vectors: NDArray[np.float32] = encoder.vectors.detach().cpu().numpy().astype(np.float32, copy=False)
    for word in words:
        if not word.isalnum() and (problem := problem_of(word, binary)):
            raise DataError(f"The word {word!r} cannot be written to a file of word vectors: {problem}.")
    for first in range(0, len(words), ROWS):
        finite = np.isfinite(vectors[first : first + ROWS]).all(axis=1)
        if not finite.all():
            raise DataError(f"The vector of {words[first + int(finite.argmin())]!r} has a nan or an infinite number.")
    return words, vectors


def problem_of(word: str, binary: bool) -> str | None:
    if not word or word != word.strip(" ") or any(character in word for character in "\t\n\r"):
        return "it is empty, begins or ends with a space, or has a tab or a line break inside"
    if binary and " " in word:
        return "in word2vec's binary format a space ends the word. Write text instead"
    if " " in word and NUMBER.fullmatch(word.rpartition(" ")[2]):
        return "the part after its last space would be read as a number of its vector"
    return None


def text_records(words: tuple[str, ...], vectors: NDArray[np.float32]) -> Iterator[bytes]:
    for first in range(0, len(words), ROWS):
        # numpy writes the fewest digits that give back the same float32.
        rows = vectors[first : first + ROWS].astype("S32").tolist()
        named = zip(encoded(words[first : first + ROWS]), rows, strict=True)
        yield b"".join(b"%b %b\n" % (word, b" ".join(row)) for word, row in named)


def binary_records(words: tuple[str, ...], vectors: NDArray[np.float32]) -> Iterator[bytes]:
    for first in range(0, len(words), ROWS):
        rows = vectors[first : first + ROWS].astype("<f4", copy=False)
        named = zip(encoded(words[first : first + ROWS]), rows, strict=True)
        yield b"".join(b"%b %b\n" % (word, row.tobytes()) for word, row in named)


def encoded(words: tuple[str, ...]) -> Iterator[bytes]:
    return (word.encode("utf-8", "replace") for word in words)  # as `Vocabulary.save` does


def write_records(path: Path, header: bytes, records: Iterator[bytes]) -> None:
    def fill(file: IO[bytes] | Any) -> None:
        file.write(header)
        file.writelines(records)

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            if path.suffix.lower() != ".gz":
                fill(file)
                return
            # Without a file name and a time, so that the same vectors give the same bytes.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                fill(packed)

    write_atomically(path, write)
