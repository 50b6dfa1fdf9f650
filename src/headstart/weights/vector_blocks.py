"""Reads files of word vectors block by block. Numbers are parsed afterwards, for the words that are kept."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import DataError
from headstart.text.formats import Source
from headstart.weights.vector_files import FLOAT_BYTES, GZIP, NUMBER, Layout, excerpt, fields_of, is_float

BLOCK_BYTES = 1 << 19
LONGEST_LINE = 64 << 20
LONGEST_WORD = 1 << 16
# Of at most 15 digits, a decimal is a whole number below 2^53 divided by a power of ten up to 10^15. Both are exact in
# float64, so their quotient is rounded once, and is what float() gives.
LONGEST_DECIMAL = 15
POWERS = np.array([float(f"1e{exponent}") for exponent in range(LONGEST_DECIMAL + 1)])


class Unpacked(Source):
    """An open file, decompressed if its first bytes are those of gzip, whatever its name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        packed = self._raw.read(len(GZIP)) == GZIP
        self._raw.seek(0)
        self.file = gzip.GzipFile(fileobj=self._raw) if packed else self._raw  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Block:
    """Some words with the text or the bytes of their numbers. places: line numbers, or offsets in a binary file."""

    words: list[bytes] = field(default_factory=list)
    numbers: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def append(self, word: bytes, numbers: bytes, place: int) -> None:
        self.words.append(word)
        self.numbers.append(numbers)
        self.places.append(place)


def text_blocks(source: Source, layout: Layout) -> Iterator[Block]:
    first, rest, some = layout.first_line, b"", b" "
    while some:
        some = source.read(BLOCK_BYTES)
        lines = (rest + some).split(b"\n")
        rest = lines.pop() if some else b""
        if len(rest) > LONGEST_LINE:
            raise DataError(f"{source.path}:{first + len(lines)}: this line is longer than {LONGEST_LINE >> 20} MB.")
        block = Block()
        for number, line in enumerate(lines, start=first):
            stripped = line.rstrip(b" \t\r")
            if not stripped.strip():
                continue
            parts = split_line(stripped, layout.dim)
            if parts is None:
                raise ragged(f"{source.path}:{number}", stripped, layout, at_end=not some)
            block.append(*parts, number)
        yield block
        first += len(lines)


def split_line(line: bytes, dim: int) -> tuple[bytes, bytes] | None:
    """The word, which may have spaces, and the text of its numbers; None if there are not `dim` of them."""
    spaces = line.count(b" ")
    if b"\t" in line:
        word, _, after = line.partition(b"\t")
        numbers = after.split()
    elif spaces == dim:
        word, _, rest = line.partition(b" ")
        return word, rest
    else:
        word, *numbers = line.rsplit(None, dim)
        if ends_in_number(word):
            return None
    return (word.strip(b" "), b" ".join(numbers)) if len(numbers) == dim else None


def ends_in_number(word: bytes) -> bool:
    """Whether the word has a space before a number: then the line more likely has one number too many."""
    return b" " in word and NUMBER.fullmatch(word.rpartition(b" ")[2].decode("utf-8", "replace")) is not None


def ragged(where: str, line: bytes, layout: Layout, at_end: bool) -> DataError:
    got = len(fields_of(line)) - 1
    hint = " It is the last line and has no line break: the file was cut short. Download it again." if at_end else ""
    return DataError(
        f"{where}: wanted a word and {layout.dim} numbers, {layout.reason}; got {got} after the word in "
        f"{excerpt(line)}.{hint}"
    )


def binary_blocks(source: Source, layout: Layout) -> Iterator[Block]:
    size = FLOAT_BYTES * layout.dim
    offset, data, some = layout.start, b"", b" "
    while some:
        some = source.read(BLOCK_BYTES)
        data += some
        block = Block()
        at = 0
        while (space := data.find(b" ", at)) >= 0 and (end := space + 1 + size) <= len(data):
            block.append(data[at:space].removeprefix(b"\n"), data[space + 1 : end], offset + at)
            at = end
        yield block
        data = data[at:]
        offset += at
        if len(data) > LONGEST_WORD + size:
            break
    if data.strip(b"\r\n"):
        raise DataError(
            f"{source.path}: byte {offset:,}: wanted a word, a space and {size:,} bytes of numbers; got "
            f"{excerpt(data)} and no whole vector. The file was cut short or damaged. Download it again."
        )


def parse_vectors(block: Block, positions: Sequence[int], layout: Layout, path: Path) -> NDArray[np.float32]:
    """(n, D): the vectors of the words at these positions of the block."""
    numbers = [block.numbers[position] for position in positions]
    try:
        vectors = parse(numbers, layout)
    except ValueError as error:
        raise first_error(block, positions, layout, path) from error
    if not np.isfinite(vectors).all():
        raise first_error(block, positions, layout, path)
    return vectors


def parse(numbers: Sequence[bytes], layout: Layout) -> NDArray[np.float32]:
    """(n, D), or a ValueError."""
    flat = np.frombuffer(b"".join(numbers), "<f4") if layout.binary else parse_decimals(b" ".join(numbers))
    return flat.reshape(len(numbers), layout.dim)


def parse_decimals(text: bytes) -> NDArray[np.float32]:
    """What float() gives for each field between single spaces, for all fields at once: one character per round."""
    padded = np.frombuffer(b" %b " % text, np.uint8)
    gaps = np.flatnonzero(padded == ord(" "))
    starts, ends = gaps[:-1] + 1, gaps[1:]
    negative = padded[starts] == ord("-")
    at = starts + negative
    whole, decimals = np.zeros(len(at)), np.zeros(len(at), np.int8)
    points, plain = np.zeros(len(at), np.int8), np.ones(len(at), bool)
    for _ in range(min(int((ends - at).max()), LONGEST_DECIMAL)):
        character = padded[at]
        digit = character - np.uint8(ord("0"))  # uint8 wraps around, so that all other characters are above 9
        is_digit, is_point, goes_on = digit < 10, character == ord("."), character != ord(" ")
        whole = np.where(is_digit, whole * 10 + digit, whole)
        decimals += is_digit & (points > 0)
        points += is_point
        plain &= is_digit | is_point | ~goes_on
        at += goes_on
    plain &= (at == ends) & (points <= 1) & (at - starts - negative > points)
    values = whole / POWERS[decimals]
    values[negative] *= -1
    # Exponents, long numbers, nan and whatever is no number at all.
    for i in np.flatnonzero(~plain):
        values[i] = float(padded[starts[i] : ends[i]].tobytes())
    with np.errstate(over="ignore"):  # to infinity, which the caller refuses
        rounded: NDArray[np.float32] = values.astype(np.float32)
    return rounded


def first_error(block: Block, positions: Sequence[int], layout: Layout, path: Path) -> DataError:
    """What is wrong with the first unusable vector. There is one: parsing all of them failed."""
    position = next(position for position in positions if not usable(block.numbers[position], layout))
    word, numbers, place = block.words[position], block.numbers[position], block.places[position]
    where = f"{path}: byte {place:,}" if layout.binary else f"{path}:{place}"
    fields = [] if layout.binary else numbers.split(b" ")
    if b"" in fields:
        return ragged(where, word + b" " + numbers, layout, at_end=False)
    for number in fields:
        if not is_float(number):
            return DataError(f"{where}: wanted a number, got {excerpt(number)} in the vector of {excerpt(word)}.")
    vector = parse([numbers], layout)
    return DataError(
        f"{where}: the vector of {excerpt(word)} has a number that is {vector[~np.isfinite(vector)][0]} as a float32; "
        f"wanted finite numbers."
    )


def usable(numbers: bytes, layout: Layout) -> bool:
    try:
        return bool(np.isfinite(parse([numbers], layout)).all())
    except ValueError:
        return False
