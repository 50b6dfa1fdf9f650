"""One reader per kind of labelled file: a path -> (where it stands, text, label) of each example."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from headstart.config import Section
from headstart.errors import ConfigError, DataError
from headstart.tasks.reviews import read_archive, read_folder
from headstart.tasks.trees import read_trees
from headstart.text.formats import Choose, Rows, Source, rows_of_csv, rows_of_jsonl, rows_of_parquet, rows_of_tsv

TEXT_COLUMNS = ("text", "sentence", "review")
LABEL_COLUMNS = ("label", "sentiment", "class")
SHOWN_COLUMNS, SHOWN_CHARACTERS = 20, 40  # a file without a line of names shows its first example here

Labelled = Iterator[tuple[str, str, str]]


class ExamplesConfig(Section):
    """How the files of labelled examples are read."""

    text_field: str | None = None
    """The column or key that holds the text; unset: 'text', 'sentence' or 'review'."""

    label_field: str | None = None
    """The column or key that holds the label; unset: 'label', 'sentiment' or 'class'."""

    labels_as: Literal[2, 5] | None = None
    """Of sentiment trees, how many classes: 5, or 2 without the neutral sentences; unset: 5."""

    @model_validator(mode="after")
    def two_fields(self) -> ExamplesConfig:
        if self.text_field is not None and self.text_field == self.label_field:
            raise ValueError(f"--text-field and --label-field must differ; got '{self.text_field}' for both")
        return self


def read_labelled(path: Path, config: ExamplesConfig) -> Labelled:
    """Every example of a file, a folder or an archive, in a fixed order."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder.")
    reader = in_folder if path.is_dir() else reader_of(path)
    if config.labels_as is not None and reader is not in_trees:
        raise ConfigError(
            f"--labels-as {config.labels_as} is for sentiment trees (.txt), which have five labels; {path} has its own."
        )
    yield from reader(path, config)


def reader_of(path: Path) -> Callable[[Path, ExamplesConfig], Labelled]:
    """The reader for a file, by the end of its name."""
    name = path.name.lower()
    for suffix, reader in READERS.items():
        if name.endswith(suffix):
            return reader
    raise DataError(f"{path}: files of this kind hold no examples; known are {', '.join(READERS)}.")


def in_folder(path: Path, config: ExamplesConfig) -> Labelled:
    return read_folder(path)


def in_archive(path: Path, config: ExamplesConfig) -> Labelled:
    return read_archive(path)


def in_trees(path: Path, config: ExamplesConfig) -> Labelled:
    return read_trees(path, config.labels_as)


def in_columns(rows: Callable[[Source, Choose], Rows], path: Path, config: ExamplesConfig) -> Labelled:
    with Source(path) as source:
        for where, row in rows(source, partial(choose_columns, config)):
            (text_field, text), (label_field, label) = row.items()
            yield where, text_of(text, text_field, where), label_of(label, label_field, where)


def choose_columns(config: ExamplesConfig, names: Sequence[str], where: str) -> list[str]:
    return [
        choose_column(config.text_field, TEXT_COLUMNS, names, where, "--text-field"),
        choose_column(config.label_field, LABEL_COLUMNS, names, where, "--label-field"),
    ]


def choose_column(given: str | None, usual: Sequence[str], names: Sequence[str], where: str, flag: str) -> str:
    """The column the user named, else the first of the usual ones that is there."""
    for name in usual if given is None else [given]:
        if name in names:
            return name
    wanted = f"'{given}'" if given is not None else " or ".join(f"'{name}'" for name in usual)
    there = ", ".join(name[:SHOWN_CHARACTERS] for name in names[:SHOWN_COLUMNS]) or "none"
    raise DataError(f"{where}: has no column {wanted}; there are: {there}. Name the right one with {flag}.")


def text_of(value: object, field: str, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: '{field}' must be text, got {value!r:.60}. Name the right one with --text-field.")
    return value


def label_of(value: object, field: str, where: str) -> str:
    """A label as a string: 1 is "1", and so is 1.0, which is how tables with gaps keep whole numbers."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if not isinstance(value, str):
        raise DataError(
            f"{where}: '{field}' must be a class, as a word or a whole number; got {value!r:.60}. Name the right one "
            f"with --label-field."
        )
    return value


COLUMNS: dict[str, Callable[[Source, Choose], Rows]] = {
    # Exact: a comma that should have been in quotation marks would make the end of the text the label.
    ".csv": partial(rows_of_csv, exact=True),
    ".tsv": partial(rows_of_tsv, exact=True),
    ".jsonl": rows_of_jsonl,
    ".parquet": rows_of_parquet,
}
PLAIN: dict[str, Callable[[Path, ExamplesConfig], Labelled]] = {
    **{suffix: partial(in_columns, rows) for suffix, rows in COLUMNS.items()},
    ".txt": in_trees,
}
READERS = (
    PLAIN
    | {f"{suffix}.gz": reader for suffix, reader in PLAIN.items()}
    | dict.fromkeys([".tar.gz", ".tgz"], in_archive)
)
