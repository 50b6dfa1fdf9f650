"""Texts to be labelled by a classifier: lines of text, JSON lines or tables, read as `transfer` reads its examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from headstart.errors import ConfigError, DataError
from headstart.tasks.reading import TABLES, TEXT_COLUMNS, cell_texts, choose_column, table_reader
from headstart.text.files import Source
from headstart.text.formats import clean
from headstart.text.lines import STANDARD_INPUT, StandardInput
from headstart.text.tables import Choose, ReadRows, find_column, json_object

TEXT_FLAG = "--text-field"
JSONL = ".jsonl"
JSON_OBJECT = re.compile(r'\s*\{\s*["}]')
"""How a JSON object begins, whole or broken. A line of text may begin with a brace, too: {sigh} what a film."""


@dataclass(frozen=True, slots=True)
class Input:
    """One text to be labelled."""

    where: str
    """Its file and line, or row, for messages."""
    text: str
    """Empty where the line is blank or the cell is missing."""
    record: dict[str, object] | None
    """All columns of its row, the text among them; None for a line of plain text."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One example to be labelled: an `Input` that may have several texts."""

    where: str
    texts: tuple[str, ...]
    record: dict[str, object] | None


PlainLines = Callable[[Source, Iterator[str]], Iterator[InputRow]]
"""(the file, all of its lines) -> a row per line."""


def read_inputs(given: str | Path, text_field: str | None = None, separator: str | None = None) -> Iterator[Input]:
    """The texts of a file, or of standard input if `given` is "-", one at a time.

    By its suffix, also with .gz, a file is a table (.csv, .tsv, .parquet) or JSON lines (.jsonl). Any other file, and
    standard input, is JSON lines if its first line is a JSON object, and otherwise a text per line, blank lines
    included. The text of a row is in the column `text_field`; unset: 'text', 'sentence' or 'review', or the only one.
    """
    rows = read_rows(given, partial(text_column, text_field), partial(a_text_per_line, text_field), separator)
    for row in rows:
        (text,) = row.texts
        yield Input(row.where, text, row.record)


def read_rows(given: str | Path, choose: Choose, plain: PlainLines, separator: str | None) -> Iterator[InputRow]:
    """choose: which columns of a table, or keys of JSON lines, hold the texts; plain: reads lines that are neither."""
    if str(given) == STANDARD_INPUT:
        yield from in_lines(StandardInput(), choose, plain)
        return
    path = Path(given).expanduser()
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give a file of texts.")
    suffix = table_suffix(path)
    with Source(path) as source:
        if suffix is None or suffix == JSONL:
            yield from in_lines(source, choose, plain, are_json=suffix == JSONL)
        else:
            yield from in_table(table_reader(suffix, separator), source, choose)


def table_suffix(path: Path) -> str | None:
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in TABLES if name.endswith(suffix)), None)


def in_table(rows: ReadRows, source: Source, choose: Choose) -> Iterator[InputRow]:
    """Every row with all its columns, those with the texts first."""
    fields: list[str] = []

    def texts_first(names: Sequence[str], where: str) -> list[str]:
        fields.extend(choose(names, where))
        check_names(names, where)
        return [*fields, *(name for name in names if name not in fields)]

    for where, row in rows(source, texts_first):
        yield row_of(row, fields, where)


def check_names(names: Sequence[str], where: str) -> None:
    """Each column is kept under its name, so no name may occur twice."""
    for name in names:
        if names.count(name) > 1:
            find_column(name, names, where)  # raises, naming the columns


def row_of(record: dict[str, object], fields: Sequence[str], where: str) -> InputRow:
    return InputRow(where, tuple(map(clean, cell_texts(record, fields, where))), record)


def text_column(text_field: str | None, names: Sequence[str], where: str) -> list[str]:
    if text_field is None and len(names) == 1:
        return [names[0]]
    return [choose_column(text_field, TEXT_COLUMNS, names, where, TEXT_FLAG)]


def in_lines(source: Source, choose: Choose, plain: PlainLines, are_json: bool = False) -> Iterator[InputRow]:
    lines = source.lines()
    first = next(lines, None)
    if first is None:
        return
    read = partial(in_json, choose) if are_json or JSON_OBJECT.match(first) else plain
    yield from read(source, chain([first], lines))


def a_text_per_line(text_field: str | None, source: Source, lines: Iterator[str]) -> Iterator[InputRow]:
    if text_field is not None:
        raise ConfigError(
            f"{source.path}: holds lines of plain text, without columns, so there is no field '{text_field}'. Remove "
            f"{TEXT_FLAG}."
        )
    for line in lines:
        yield InputRow(f"{source.path}:{source.line}", (clean(line.rstrip("\r\n")),), None)


def in_json(choose: Choose, source: Source, lines: Iterator[str]) -> Iterator[InputRow]:
    """Lines may differ in their other keys; each record is kept whole. Blank lines are skipped."""
    fields: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        where = f"{source.path}:{source.line}"
        record = json_object(line, where)
        fields = fields or choose(list(record), where)
        for field in fields:
            if field not in record:
                there = ", ".join(record) or "none"
                raise DataError(f"{where}: has no key '{field}'; there are: {there}. Every line needs it.")
        yield row_of(record, fields, where)
