"""Text files of any known kind -> a stream of blocks of text, in memory that does not grow with the files."""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import Field

from headstart.config import Section
from headstart.errors import DataError
from headstart.text.formats import FORMATS, Source, clean, cut_point, format_of, known_suffixes

# A document longer than this comes as several blocks, cut where a sentence ends if there is such a place.
BLOCK_CHARACTERS = 1 << 20
HASHED_AT_ONCE = 1 << 22


class TextConfig(Section):
    """How the files of unlabelled text are read."""

    field: str | None = None
    """The column or key that holds the text in csv, tsv, jsonl and parquet files; unset: 'text', or the only one."""

    one_per_line: bool = False
    """In .txt files, whether each line is a document; otherwise documents are separated by blank lines."""

    lines_are_sentences: bool = False
    """Whether each line is a sentence; otherwise a line break is white space, as in books with hard-wrapped lines."""

    valid_share: float = Field(default=0.01, ge=0.0, le=0.5)
    """The share of documents held out for validation when no validation text is given."""


@dataclass(frozen=True, slots=True)
class Block:
    """A document, or a part of a long one. Lines are joined by "\\n"."""

    text: str
    starts_document: bool


def discover(sources: Sequence[str | Path]) -> list[Path]:
    """The text files meant by files, folders (searched through, in order of name) and patterns, each file once."""
    found: dict[Path, Path] = {}
    for source in sources:
        for path in files_of(source):
            found.setdefault(path.resolve(), path)
    if not found:
        raise DataError("No text was given: name at least one file, folder or pattern.")
    return list(found.values())


def files_of(source: str | Path) -> list[Path]:
    path = Path(source).expanduser()
    if path.is_dir():
        files = text_files_under(path)
        if not files:
            raise DataError(f"{path}: this folder holds no text file; known are {known_suffixes()}.")
        return files
    if path.exists():
        format_of(path)
        return [path]
    if not glob.has_magic(str(path)):
        raise DataError(f"{path}: there is no such file or folder.")
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    files = [file for match in matches for file in (text_files_under(match) if match.is_dir() else [match])]
    files = [file for file in files if is_text(file)]
    if not files:
        raise DataError(f"{path}: this pattern matches no text file; known are {known_suffixes()}.")
    return files


def text_files_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_text(path))


def is_text(path: Path) -> bool:
    return path.name.lower().endswith(tuple(FORMATS))


def content_key(paths: Sequence[Path]) -> str:
    """SHA-256 over the contents of the files and their formats, in order; where they lie does not matter."""
    parts = [(format_of(path), file_digest(path)) for path in paths]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def file_digest(path: Path) -> str:
    try:
        status = path.stat()
        return digest_once(path.resolve(), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error


@lru_cache(maxsize=4096)  # a run asks three times: to count words, to learn pieces and to tokenise
def digest_once(path: Path, size: int, modified: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while some := file.read(HASHED_AT_ONCE):
            digest.update(some)
    return digest.hexdigest()


def read_blocks(
    paths: Sequence[Path], config: TextConfig, on_bytes: Callable[[int], None] | None = None
) -> Iterator[Block]:
    """Every document of the files, in order. on_bytes is told the bytes on disk read so far, all files together."""
    before = 0
    empty = True
    for path in paths:
        with Source(path) as source:
            for text, starts_document in FORMATS[format_of(path)](source, config.field, config.one_per_line):
                if on_bytes is not None:
                    on_bytes(before + source.position())
                for block in blocks_of(clean(text), starts_document):
                    empty = False
                    yield block
            before += source.size
        if on_bytes is not None:
            on_bytes(before)
    if empty:
        names = ", ".join(str(path) for path in paths[:3]) + (", ..." if len(paths) > 3 else "")
        raise DataError(f"{names}: holds no text. Give files with at least one line that is not blank.")


def blocks_of(text: str, starts_document: bool) -> Iterator[Block]:
    """Cut a long text into blocks; one of white space only gives none."""
    first = 0
    while len(text) - first > BLOCK_CHARACTERS:
        last = cut_point(text, first, first + BLOCK_CHARACTERS)
        part = text[first:last].strip()
        if part:
            yield Block(part, starts_document)
            starts_document = False
        first = last
    part = text[first:].strip()
    if part:
        yield Block(part, starts_document)
