"""One reader per file format: a file -> its texts, each with whether it starts a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from headstart.errors import DataError, Remedy
from headstart.text.files import BOM, CHUNK_BYTES, Source
from headstart.text.tables import (
    ReadRows,
    find_column,
    listed_columns,
    rows_of_csv,
    rows_of_jsonl,
    rows_of_parquet,
    rows_of_tsv,
    separator_hint,
)

__all__ = ["BOM", "CHUNK_BYTES", "FORMATS", "Source", "clean", "cut_point", "format_of", "is_plain", "known_suffixes"]

PART_CHARACTERS = 1 << 18  # a longer document is passed on in parts, before its end is found
BLANK_LINES = re.compile(r"\n\s*\n")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
TXT = ".txt"
SET_FIELD = Remedy("Name the column that holds the text with {}.", "text.field=NAME", "--field")

Texts = Iterator[tuple[str, bool]]


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

    White space at the cut stays with the part that follows: it may be the beginning of a blank line.
    """
    earliest = last - (last - first) // 10
    for mark, kept in ((".\n", 1), (". ", 1), ("。", 1), ("\n", 0), (" ", 0)):
        found = text.rfind(mark, earliest, last)
        if found >= 0:
            return found + kept
    return last


def universal(text: str) -> str:
    """All line breaks as "\\n"."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def text_column(field: str | None, names: Sequence[str], where: str) -> list[str]:
    """The column that holds the text: the one the user named, else 'text', else the only one."""
    found = find_column(field or "text", names, where)
    if found is not None:
        return [found]
    if field is None and len(names) == 1:
        return [names[0]]
    wanted = f"has no column '{field}'" if field else "none of the columns is called 'text'"
    hint = separator_hint(names, [field or "text"])
    raise DataError(f"{where}: {wanted}; there are: {listed_columns(names)}.{hint}", SET_FIELD)


def read_rows(rows: ReadRows, source: Source, field: str | None, one_per_line: bool) -> Texts:
    for where, row in rows(source, partial(text_column, field)):
        for name, value in row.items():
            yield text_of(value, name, where), True


def text_of(value: object, field: str, where: str, remedy: Remedy = SET_FIELD) -> str:
    """The text of a cell; a missing one is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: '{field}' must be text, got {value!r:.60}.", remedy)
    return value


def clean(text: str) -> str:
    """Line breaks as "\\n", and no lone surrogates."""
    return universal(without_surrogates(text))


def clean_word(word: str) -> str:
    """A word that was given as one, with spaces for line breaks: files of words have one on each line."""
    return clean(word).strip("\n").replace("\n", " ")


def without_surrogates(text: str) -> str:
    """Lone surrogates (JSON can contain them, UTF-8 cannot) as U+FFFD. Every character keeps its place."""
    return text if text.isascii() else LONE_SURROGATE.sub("\ufffd", text)


READERS: dict[str, Callable[[Source, str | None, bool], Texts]] = {
    TXT: read_txt,
    ".jsonl": partial(read_rows, rows_of_jsonl),
    ".csv": partial(read_rows, rows_of_csv),
    ".tsv": partial(read_rows, rows_of_tsv),
    ".parquet": partial(read_rows, rows_of_parquet),
}
FORMATS = READERS | {f"{suffix}.gz": reader for suffix, reader in READERS.items()}


def format_of(path: Path) -> str:
    """The known suffix that a file's name ends in."""
    name = path.name.lower()
    for suffix in FORMATS:
        if name.endswith(suffix):
            return suffix
    raise DataError(f"{path}: files of this kind are not read; known are {known_suffixes()}.")


def is_plain(path: Path) -> bool:
    """Whether a file is plain text, without columns."""
    return FORMATS[format_of(path)] is read_txt


def known_suffixes() -> str:
    return ", ".join(FORMATS)
