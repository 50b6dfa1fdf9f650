"""One reader per file format: a file -> its texts, each with whether it begins a document."""

from __future__ import annotations

import csv
import gzip
import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from headstart.errors import DataError

# Small enough that the allocator keeps reusing the same memory: with larger pieces the heap grows bit by bit.
CHUNK_BYTES = 1 << 16
PART_CHARACTERS = 1 << 18  # so much of a document is passed on before its end is found
LONGEST_LINE = 64 << 20
BOM = b"\xef\xbb\xbf"
BLANK_LINES = re.compile(r"\n\s*\n")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Texts = Iterator[tuple[str, bool]]
Rows = Iterator[tuple[str, dict[str, Any]]]  # where each row stands, and its columns in the order they were chosen
Choose = Callable[[Sequence[str], str], list[str]]  # (the columns there are, where they are named) -> those wanted


class Source:
    """An open file, unpacked if its name ends in .gz or .tgz, that knows how far it was read on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 0  # the last line given out, counted from 1
        try:
            self._raw = path.open("rb")
            self.size = path.stat().st_size
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}).") from error
        packed = path.name.lower().endswith((".gz", ".tgz"))
        self.file: IO[bytes] = gzip.GzipFile(fileobj=self._raw) if packed else self._raw  # type: ignore[assignment]

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.file.close()
        self._raw.close()

    def position(self) -> int:
        return min(self._raw.tell(), self.size)

    def chunks(self) -> Iterator[str]:
        """The text in runs of whole lines."""
        parts: list[bytes] = []
        length = 0
        first = True
        while some := self.read(CHUNK_BYTES):
            some, first = (some.removeprefix(BOM), False) if first else (some, False)
            cut = some.rfind(b"\n") + 1
            if cut:
                yield self._lines_of(b"".join([*parts, some[:cut]]))
                parts, length = [], 0
            parts.append(some[cut:])
            length += len(some) - cut
            if length > LONGEST_LINE:
                raise self._too_long()
        if length:
            yield self._lines_of(b"".join(parts))

    def lines(self) -> Iterator[str]:
        """The text line by line, each with its line break."""
        while some := self.read(LONGEST_LINE + 1, whole_line=True):
            if len(some) > LONGEST_LINE:
                raise self._too_long()
            yield self._lines_of(some.removeprefix(BOM) if self.line == 0 else some)

    def _lines_of(self, some: bytes) -> str:
        try:
            text = some.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.line + some.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{self.path}:{line}: not UTF-8 (byte 0x{some[error.start]:02x}). Convert the file first, for example "
                f"with: iconv -f LATIN1 -t UTF-8 {self.path.name}"
            ) from error
        self.line += some.count(b"\n") + (not some.endswith(b"\n"))
        return text

    def read(self, most: int, whole_line: bool = False) -> bytes:
        try:
            return self.file.readline(most) if whole_line else self.file.read(most)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{self.path}: damaged or cut short ({error}). Check it with gzip -t, and fetch or pack it again."
            ) from error
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror}).") from error

    def _too_long(self) -> DataError:
        return DataError(
            f"{self.path}:{self.line + 1}: this line is longer than {LONGEST_LINE >> 20} MB. Break the text into lines."
        )


def read_txt(source: Source, field: str | None, one_per_line: bool) -> Texts:
    if one_per_line:
        for chunk in source.chunks():
            for line in universal(chunk).split("\n"):
                yield line, True
        return
    rest, starts = "", True
    for chunk in source.chunks():
        *documents, rest = BLANK_LINES.split(rest + universal(chunk))
        for document in documents:
            yield document, starts
            starts = True
        if len(rest) > PART_CHARACTERS and rest.strip():
            cut = cut_point(rest, 0, len(rest))
            yield rest[:cut], starts
            rest, starts = rest[cut:], False
    yield rest, starts


def cut_point(text: str, first: int, last: int) -> int:
    """Where to cut a long document: after the last sentence of the final tenth, else before its last space.

    The white space at the cut stays with what follows: it may be the beginning of a blank line.
    """
    earliest = last - (last - first) // 10
    for mark, kept in ((".\n", 1), (". ", 1), ("。", 1), ("\n", 0), (" ", 0)):
        found = text.rfind(mark, earliest, last)
        if found >= 0:
            return found + kept
    return last


def universal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def rows_of_jsonl(source: Source, choose: Choose) -> Rows:
    fields: list[str] = []
    for line in source.lines():
        if not line.strip():
            continue
        where = f"{source.path}:{source.line}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON ({error}). Each line has to be one JSON object.") from error
        if not isinstance(row, dict):
            raise DataError(f'{where}: expected a JSON object such as {{"text": ...}}, got {line.strip()[:60]!r}.')
        fields = fields or choose(list(row), where)
        for field in fields:
            if field not in row:
                there = ", ".join(row) or "none"
                raise DataError(f"{where}: has no key '{field}'; there are: {there}. Every line needs the same keys.")
        yield where, {field: row[field] for field in fields}


def rows_of_csv(source: Source, choose: Choose, exact: bool = False) -> Rows:
    # Strict, because a quote that is never closed would otherwise swallow the rest of the file without a word.
    yield from delimited(source, choose, {"delimiter": ",", "strict": True}, exact)


def rows_of_tsv(source: Source, choose: Choose, exact: bool = False) -> Rows:
    # Tab-separated files have no quoting: a quotation mark is a character like any other.
    yield from delimited(source, choose, {"delimiter": "\t", "quoting": csv.QUOTE_NONE}, exact)


def delimited(source: Source, choose: Choose, dialect: dict[str, Any], exact: bool) -> Rows:
    """The rows under a first line of names. exact: a row with more columns than there are names is an error."""
    # The limit belongs to the whole process; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    rows = csv.reader(source.lines(), **dialect)
    try:
        header = next(rows, None)
        if header is None:
            return
        columns = {field: header.index(field) for field in choose(header, f"{source.path}:1")}
        last, column = max(columns.items(), key=lambda item: item[1])
        for row in rows:
            if not row:
                continue
            where = f"{source.path}:{source.line}"
            if len(row) <= column:
                raise DataError(
                    f"{where}: has {len(row)} columns, but '{last}' is column {column + 1} of "
                    f"{len(header)}. Each row needs as many columns as the first line names."
                )
            if exact and any(row[len(header) :]):
                raise DataError(
                    f"{where}: has {len(row)} columns, but the first line names {len(header)}. In csv files, a text "
                    f"with a comma in it stands in quotation marks."
                )
            yield where, {field: row[number] for field, number in columns.items()}
    except csv.Error as error:
        raise DataError(f"{source.path}:{source.line}: broken row ({error}). Check the quotation marks.") from error


def rows_of_parquet(source: Source, choose: Choose) -> Rows:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(
            f"{source.path}: reading parquet files needs pyarrow. Install it with: pip install 'headstart[parquet]'"
        ) from error
    number = 0
    try:
        with unpacked(source) as file:
            table = pyarrow.parquet.ParquetFile(file)
            fields = choose(table.schema_arrow.names, str(source.path))
            for batch in table.iter_batches(batch_size=1024, columns=fields):
                columns = [batch.column(batch.schema.names.index(field)).to_pylist() for field in fields]
                for values in zip(*columns, strict=True):
                    number += 1
                    yield f"{source.path}, row {number}", dict(zip(fields, values, strict=True))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{source.path}: not a parquet file that can be read ({error}).") from error


@contextmanager
def unpacked(source: Source) -> Iterator[IO[bytes]]:
    """A file to jump about in, as parquet needs: a packed one is unpacked to the disk first, not to memory."""
    if not isinstance(source.file, gzip.GzipFile):
        yield source.file
        return
    with tempfile.TemporaryFile() as file:
        while some := source.read(CHUNK_BYTES):
            file.write(some)
        file.seek(0)
        yield file


SET_FIELD = "Name the one with the text with --field."


def choose_field(names: Sequence[str], where: str) -> str:
    """'text' if it is there, else the only one."""
    if "text" in names:
        return "text"
    if len(names) == 1:
        return names[0]
    raise DataError(
        f"{where}: none of the columns is called 'text'; there are: {', '.join(names) or 'none'}. {SET_FIELD}"
    )


def text_column(field: str | None, names: Sequence[str], where: str) -> list[str]:
    """The one column that holds the text, as the user named it or as chosen."""
    field = field or choose_field(names, where)
    if field not in names:
        raise DataError(f"{where}: has no column '{field}'; there are: {', '.join(names) or 'none'}. {SET_FIELD}")
    return [field]


def read_rows(rows: Callable[[Source, Choose], Rows], source: Source, field: str | None, one_per_line: bool) -> Texts:
    for where, row in rows(source, partial(text_column, field)):
        for name, value in row.items():
            yield text_of(value, name, where), True


def text_of(value: object, field: str, where: str) -> str:
    if value is None:  # a row without text is an empty document, and empty documents are skipped
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: '{field}' must be text, got {value!r:.60}. {SET_FIELD}")
    return value


def clean(text: str) -> str:
    """JSON can spell half a surrogate pair, which is no character; such halves become U+FFFD. Lines end in "\\n"."""
    return universal(text if text.isascii() else LONE_SURROGATE.sub("\ufffd", text))


READERS: dict[str, Callable[[Source, str | None, bool], Texts]] = {
    ".txt": read_txt,
    ".jsonl": partial(read_rows, rows_of_jsonl),
    ".csv": partial(read_rows, rows_of_csv),
    ".tsv": partial(read_rows, rows_of_tsv),
    ".parquet": partial(read_rows, rows_of_parquet),
}
FORMATS = READERS | {f"{suffix}.gz": reader for suffix, reader in READERS.items()}


def format_of(path: Path) -> str:
    """The known suffix a file's name ends in."""
    name = path.name.lower()
    for suffix in FORMATS:
        if name.endswith(suffix):
            return suffix
    raise DataError(f"{path}: files of this kind are not read; known are {known_suffixes()}.")


def known_suffixes() -> str:
    return ", ".join(FORMATS)
