"""Texts one by one, a line each, from files or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from headstart.errors import ConfigError, DataError
from headstart.text.documents import check_field, discover
from headstart.text.files import Source
from headstart.text.formats import FORMATS, clean, format_of, is_plain

STANDARD_INPUT = "-"


class StandardInput(Source):
    """Standard input as a Source; its length is not known."""

    def __init__(self) -> None:
        self.path = Path("standard input")
        self.line = 0
        self.size = 0
        self._unpacked = 0
        self.file = sys.stdin.buffer

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        pass  # not ours to close

    def position(self) -> int:
        return 0


class Lines:
    """The texts of a file, of all files of a folder or pattern, or of standard input.

    A text per line of a .txt file, empty lines included, and per row of a table. Only one line is held in memory.
    """

    def __init__(self, given: str | Path, field: str | None = None) -> None:
        """given: - is standard input. field: the column with the text in csv, tsv, jsonl and parquet files."""
        self.count = 0
        self.where = ""
        """Where the last text stands: its file and, if it has lines, the line."""
        self._paths = None if str(given) == STANDARD_INPUT else discover([given])
        if self._paths is not None:
            check_field(self._paths, field)
        elif field is not None:
            raise ConfigError(f"Standard input is plain text without columns, so there is no field '{field}'.")
        self._field = field
        self._bytes = sum(path.stat().st_size for path in self._paths or ())
        self._bytes_read = 0

    def __iter__(self) -> Iterator[str]:
        before = 0
        sources = [StandardInput()] if self._paths is None else map(Source, self._paths)
        for opened in sources:
            with opened as source:
                for text in texts_of(source, self._field):
                    self.count += 1
                    self._bytes_read = before + source.position()
                    self.where = f"{source.path}:{source.line}" if source.line else str(source.path)
                    yield clean(text)
                before += source.size

    @property
    def can_be_read_again(self) -> bool:
        """From the beginning; what was read of standard input is gone."""
        return self._paths is not None

    def expected(self) -> int:
        """An estimate of the number of texts, from the bytes read so far; 0 if unknown."""
        return max(self.count, self.count * self._bytes // self._bytes_read) if self._bytes_read else 0

    def nothing_there(self) -> DataError:
        names = "standard input" if self._paths is None else ", ".join(map(str, self._paths[:3]))
        return DataError(f"{names}: holds no text. Give at least one line that is not blank.")


def texts_of(source: Source, field: str | None) -> Iterator[str]:
    if isinstance(source, StandardInput) or is_plain(source.path):
        return (line.rstrip("\r\n") for line in source.lines())
    return (text for text, _ in FORMATS[format_of(source.path)](source, field, True))
