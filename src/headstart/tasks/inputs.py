"""Texts to be labelled by a classifier: lines of text, JSON lines or tables, read as `transfer` reads its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from headstart.errors import ConfigError, DataError
from headstart.tasks.reading import SET_TEXT_FIELD, TABLES, TEXT_COLUMNS, choose_column, table_reader
from headstart.text.files import Source
from headstart.text.formats import clean, text_of
from headstart.text.lines import STANDARD_INPUT, StandardInput
from headstart.text.tables import find_column, json_object

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


def read_inputs(given: str | Path, text_field: str | None = None, separator: str | None = None) -> Iterator[Input]:
    """The texts of a file, or of standard input if `given` is "-", one at a time.

    By its suffix, also with .gz, a file is a table (.csv, .tsv, .parquet) or JSON lines (.jsonl). Any other file, and
    standard input, is JSON lines if its first line is a JSON object, and otherwise a text per line, blank lines
    included. The text of a row is in the column `text_field`; unset: 'text', 'sentence' or 'review', or the only one.
    """
    if str(given) == STANDARD_INPUT:
        yield from in_lines(StandardInput(), text_field)
        return
    path = Path(given).expanduser()
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give a file of texts.")
    suffix = table_suffix(path)
    with Source(path) as source:
        if suffix is None or suffix == JSONL:
            yield from in_lines(source, text_field, are_json=suffix == JSONL)
        else:
            yield from in_table(source, suffix, text_field, separator)


def table_suffix(path: Path) -> str | None:
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in TABLES if name.endswith(suffix)), None)


def in_table(source: Source, suffix: str, text_field: str | None, separator: str | None) -> Iterator[Input]:
    for where, row in table_reader(suffix, separator)(source, partial(text_first, text_field)):
        field = next(iter(row))
        yield Input(where, clean(text_of(row[field], field, where, SET_TEXT_FIELD)), row)


def text_first(text_field: str | None, names: Sequence[str], where: str) -> list[str]:
    """All columns, the one with the text first. Each is kept under its name, so no name may occur twice."""
    text = text_column(text_field, names, where)
    for name in names:
        if names.count(name) > 1:
            find_column(name, names, where)  # raises, naming the columns
    return [text, *(name for name in names if name != text)]


def text_column(text_field: str | None, names: Sequence[str], where: str) -> str:
    if text_field is None and len(names) == 1:
        return names[0]
    return choose_column(text_field, TEXT_COLUMNS, names, where, TEXT_FLAG)


def in_lines(source: Source, text_field: str | None, are_json: bool = False) -> Iterator[Input]:
    lines = source.lines()
    first = next(lines, None)
    if first is None:
        return
    if are_json or JSON_OBJECT.match(first):
        yield from in_json(source, chain([first], lines), text_field)
        return
    if text_field is not None:
        raise ConfigError(
            f"{source.path}: holds lines of plain text, without columns, so there is no field '{text_field}'. Remove "
            f"{TEXT_FLAG}."
        )
    for line in chain([first], lines):
        yield Input(f"{source.path}:{source.line}", clean(line.rstrip("\r\n")), None)


def in_json(source: Source, lines: Iterator[str], text_field: str | None) -> Iterator[Input]:
    """Lines may differ in their other keys; each record is kept whole. Blank lines are skipped."""
    field: str | None = None
    for line in lines:
        if not line.strip():
            continue
        where = f"{source.path}:{source.line}"
        record = json_object(line, where)
        field = field or text_column(text_field, list(record), where)
        if field not in record:
            there = ", ".join(record) or "none"
            raise DataError(f"{where}: has no key '{field}'; there are: {there}. Every line needs it.")
        yield Input(where, clean(text_of(record[field], field, where, SET_TEXT_FIELD)), record)
