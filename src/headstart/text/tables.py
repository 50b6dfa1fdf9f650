"""Rows of csv, tsv, JSON-lines and Parquet files: the columns asked for, each row with its place in the file."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

from headstart.errors import DataError
from headstart.text.files import CHUNK_BYTES, LONGEST_LINE, Source

Rows = Iterator[tuple[str, dict[str, Any]]]
"""(where the row stands, its columns in the order in which they were chosen)."""
Choose = Callable[[Sequence[str], str], list[str]]
"""(names of the columns, where they are named) -> the columns wanted."""
ReadRows = Callable[[Source, Choose], Rows]

COMMA, TAB = ",", "\t"
OTHER_SEPARATORS = (";", TAB)
SHOWN_COLUMNS, SHOWN_CHARACTERS = 20, 40  # a file without a header shows its first row in the message


def find_column(name: str, names: Sequence[str], where: str) -> str | None:
    """The column of this name, exactly or else but for capitals and outer blanks; None if there is none.

    Two columns that fit equally well are an error: choosing one of them would be a guess.
    """
    wanted = name.strip().casefold()
    fitting = [number for number, there in enumerate(names, 1) if there == name] or [
        number for number, there in enumerate(names, 1) if there.strip().casefold() == wanted
    ]
    if len(fitting) > 1:
        listed = " and ".join(f"{number} ('{names[number - 1]}')" for number in fitting)
        raise DataError(f"{where}: more than one column is called '{name}': columns {listed}. Rename all but one.")
    return names[fitting[0] - 1] if fitting else None


def listed_columns(names: Sequence[str]) -> str:
    return ", ".join(name[:SHOWN_CHARACTERS] for name in names[:SHOWN_COLUMNS]) or "none"


def separator_hint(names: Sequence[str], wanted: Sequence[str]) -> str:
    """A question, if splitting the column names at another separator would give one of those wanted."""
    for mark in (*OTHER_SEPARATORS, COMMA):
        parts = {part.strip(' "').casefold() for name in names for part in name.split(mark) if mark in name}
        if any(name.casefold() in parts for name in wanted):
            return f" Are the columns separated by {spoken(mark)}?"
    return ""


def spoken(separator: str) -> str:
    return "tabs" if separator == TAB else f"'{separator}'"


def rows_of_jsonl(source: Source, choose: Choose) -> Rows:
    fields: list[str] = []
    for where, row in objects_of(source):
        fields = fields or choose(list(row), where)
        for field in fields:
            if field not in row:
                there = ", ".join(row) or "none"
                raise DataError(f"{where}: has no key '{field}'; there are: {there}. Every line needs the same keys.")
        yield where, {field: row[field] for field in fields}


def objects_of(source: Source) -> Rows:
    """The JSON object of each line that is not blank."""
    for line in source.lines():
        if line.strip():
            where = f"{source.path}:{source.line}"
            yield where, json_object(line, where)


def json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}). Each line has to be one JSON object.") from error
    if not isinstance(row, dict):
        raise DataError(f'{where}: expected a JSON object such as {{"text": ...}}, got {line.strip()[:60]!r}.')
    return row


def rows_of_csv(source: Source, choose: Choose, exact: bool = False, separator: str | None = None) -> Rows:
    """separator: left out, it is a comma; or a semicolon or tab where the header has those and no comma."""
    lines = source.lines()
    header = next(lines, None)
    if header is None:
        return
    dialect = {"delimiter": separator or sniffed_separator(header)}
    # Strict: a quote that is never closed would otherwise silently swallow the rest of the file.
    yield from delimited(source, chain([header], lines), choose, {**dialect, "strict": True}, exact)


def sniffed_separator(header: str) -> str:
    """How a csv file's columns are separated: spreadsheets in many languages write semicolons, some write tabs."""
    if COMMA in header:
        return COMMA
    return max(OTHER_SEPARATORS, key=header.count) if any(map(header.count, OTHER_SEPARATORS)) else COMMA


def rows_of_tsv(source: Source, choose: Choose, exact: bool = False, separator: str | None = None) -> Rows:
    # Tab-separated files have no quoting: a quotation mark is a character like any other.
    dialect = {"delimiter": separator or TAB, "quoting": csv.QUOTE_NONE}
    yield from delimited(source, source.lines(), choose, dialect, exact)


def delimited(source: Source, lines: Iterator[str], choose: Choose, dialect: dict[str, Any], exact: bool) -> Rows:
    """The rows below a header. exact: a row with more columns than the header is an error."""
    # The limit is global to the process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    rows = csv.reader(lines, **dialect)
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
                    f"{where}: has {len(row)} columns, but the first line names {len(header)}. The columns are "
                    f"separated by {spoken(dialect['delimiter'])}; in csv files, put a text that contains that in "
                    f"quotation marks."
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
    """A seekable file, as Parquet needs. A .gz is unpacked to a temporary file, not into memory."""
    if not isinstance(source.file, gzip.GzipFile):
        yield source.file
        return
    with tempfile.TemporaryFile() as file:
        while some := source.read(CHUNK_BYTES):
            file.write(some)
        file.seek(0)
        yield file
