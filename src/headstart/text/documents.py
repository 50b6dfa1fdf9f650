"""Text files of any known format -> a stream of blocks of text, in constant memory."""

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
from headstart.errors import ConfigError, DataError, Remedy
from headstart.text.files import Source, check_regular
from headstart.text.formats import FORMATS, clean, cut_point, format_of, is_plain, known_suffixes
from headstart.text.layout import decide

# A longer document comes as several blocks, cut at the end of a sentence where possible.
BLOCK_CHARACTERS = 1 << 20
HASHED_AT_ONCE = 1 << 22


class TextConfig(Section):
    """How the files of unlabelled text are read."""

    field: str | None = None
    """The column or key that holds the text in csv, tsv, jsonl and parquet files; unset: 'text', or the only one."""

    one_per_line: bool | None = None
    """In .txt files, whether each line is a document, or blank lines separate documents; unset: the files decide."""

    lines_are_sentences: bool = False
    """Whether each line is a sentence; otherwise a line break is white space, as in books with hard-wrapped lines."""

    valid_share: float = Field(default=0.01, ge=0.0, le=0.5)
    """The share of documents held out for validation when no validation text is given."""


def settle_layout(paths: Sequence[Path], config: TextConfig) -> tuple[TextConfig, str | None]:
    """The configuration with `one_per_line` decided, and a sentence about that for the user, if there is one."""
    if config.one_per_line is not None:
        return config, None
    one_per_line, notice = decide(paths)
    return config.model_copy(update={"one_per_line": one_per_line}), notice


def reading_settings(paths: Sequence[Path], config: TextConfig) -> list[object]:
    """The settings that decide which documents the files contain."""
    return [config.field, settle_layout(paths, config)[0].one_per_line]


def size_of(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


@dataclass(frozen=True, slots=True)
class Block:
    """A document, or a part of a long one. Its line breaks are "\\n"."""

    text: str
    starts_document: bool


def discover(sources: Sequence[str | Path]) -> list[Path]:
    """The text files that files, folders (recursively, sorted by name) and glob patterns stand for, each file once."""
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
        check_regular(path)
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
    """SHA-256 over the contents and formats of the files, in order; their paths do not matter."""
    parts = [(format_of(path), file_digest(path)) for path in paths]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def file_digest(path: Path) -> str:
    try:
        status = path.stat()
        return digest_once(path.resolve(), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error


@lru_cache(maxsize=4096)  # a run asks several times: to count words, to learn pieces and to tokenise
def digest_once(path: Path, size: int, modified: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while some := file.read(HASHED_AT_ONCE):
            digest.update(some)
    return digest.hexdigest()


def read_blocks(
    paths: Sequence[Path], config: TextConfig, on_bytes: Callable[[int], None] | None = None
) -> Iterator[Block]:
    """All documents of the files, in order. on_bytes is called with the bytes on disk read so far, over all files."""
    check_field(paths, config.field)
    config, _ = settle_layout(paths, config)
    before = 0
    empty = True
    for path in paths:
        with Source(path) as source:
            for text, starts_document in FORMATS[format_of(path)](source, config.field, bool(config.one_per_line)):
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


def check_field(paths: Sequence[Path], field: str | None) -> None:
    """--field on plain text alone is a mistake: ignored, it would hide that the wrong file was given."""
    if field is not None and all(is_plain(path) for path in paths):
        raise ConfigError(
            f"{paths[0]}: is plain text and has no columns, so there is no field '{field}'.",
            Remedy("Remove {}.", f"text.field={field}", "--field"),
        )


def blocks_of(text: str, starts_document: bool) -> Iterator[Block]:
    """Cut a long text into blocks; white space alone gives none."""
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
