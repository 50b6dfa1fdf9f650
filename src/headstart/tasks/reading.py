"""Files of labelled texts: a reader for each kind of file, and one spelling for each label."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import BeforeValidator, model_validator

from headstart.config import Section
from headstart.errors import ConfigError, DataError, Remedy
from headstart.tasks.reviews import read_archive, read_folder
from headstart.tasks.trees import read_trees
from headstart.text.files import Source
from headstart.text.formats import clean, text_of
from headstart.text.tables import (
    COMMA,
    TAB,
    ReadRows,
    find_column,
    listed_columns,
    rows_of_csv,
    rows_of_jsonl,
    rows_of_parquet,
    rows_of_tsv,
    separator_hint,
    sniffed_separator,
    spoken,
)

TEXT_COLUMNS = ("text", "sentence", "review")
LABEL_COLUMNS = ("label", "sentiment", "class")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_FLOAT = re.compile(r"([+-]?[0-9]{1,15})\.0+")
BOOLEANS = frozenset({"true", "false"})
BITS = frozenset({"0", "1", "0.0", "1.0"})
NAN = "nan"
SET_TEXT_FIELD = Remedy("Name the column that holds the text with {}.", "text_field=NAME", "--text-field")
SET_SECOND_FIELD = Remedy("Name the column that holds the second text with {}.", "second_field=NAME", "--second-field")

Labelled = Iterator[tuple[str, str, str]]
"""(where it stands, text, label) of each example."""
ContentT = TypeVar("ContentT")


def as_separator(value: object) -> object:
    """A tab is hard to type in a shell, so its name will do."""
    if not isinstance(value, str):
        return value
    value = {"tab": TAB, "\\t": TAB}.get(value, value)
    if len(value) != 1 or value in '"\r\n':
        raise ValueError("--separator is one character, such as ; or tab")
    return value


Separator = Annotated[str | None, BeforeValidator(as_separator)]


class ExamplesConfig(Section):
    """How files of labelled examples are read."""

    text_field: str | None = None
    """The column or key that holds the text; unset: 'text', 'sentence' or 'review'."""

    label_field: str | None = None
    """The column or key that holds the label; unset: 'label', 'sentiment' or 'class'."""

    labels_as: Literal[2, 5] | None = None
    """Of sentiment trees, how many classes: 5, or 2 without the neutral sentences; unset: 5."""

    separator: Separator = None
    """The character between the columns of csv and tsv files; unset: a tab in tsv files, and in csv files a comma, or
    the semicolon or tab that the header has instead."""

    @model_validator(mode="after")
    def two_fields(self) -> ExamplesConfig:
        if self.text_field is not None and self.text_field == self.label_field:
            raise ValueError(f"--text-field and --label-field must differ; got '{self.text_field}' for both")
        return self


def read_labelled(path: Path, config: ExamplesConfig) -> Labelled:
    """Every example of a file, a folder or an archive, in a fixed order. A missing label is empty."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder.")
    reader = in_folder if path.is_dir() else reader_of(path)
    if config.labels_as is not None and reader is not in_trees:
        raise ConfigError(
            f"--labels-as {config.labels_as} is for sentiment trees (.txt), which have five labels; {path} has its own."
        )
    yield from unify_labels(reader(path, config))


def reader_of(path: Path) -> Callable[[Path, ExamplesConfig], Labelled]:
    """The reader for a file, by its suffix."""
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


def in_columns(suffix: str, path: Path, config: ExamplesConfig) -> Labelled:
    rows = table_reader(suffix, config.separator)
    with Source(path) as source:
        for where, row in rows(source, partial(choose_columns, config)):
            text_field, label_field = row
            (text,) = cell_texts(row, [text_field], where)
            yield where, text, label_of(row[label_field], label_field, where)


def cell_texts(row: Mapping[str, object], fields: Sequence[str], where: str) -> tuple[str, ...]:
    """The texts of a row: one, or two of a pair. A missing one is empty."""
    remedies = (SET_TEXT_FIELD, SET_SECOND_FIELD)
    return tuple([text_of(row[field], field, where, fix) for field, fix in zip(fields, remedies, strict=False)])


def table_reader(suffix: str, separator: str | None) -> ReadRows:
    """The reader of a table's rows. A csv or tsv row with too many columns is an error: a comma that should have been
    in quotation marks would make the end of the text the label."""
    if suffix in DELIMITED:
        return partial(DELIMITED[suffix], exact=True, separator=separator)
    return OTHER_TABLES[suffix]


def choose_columns(config: ExamplesConfig, names: Sequence[str], where: str) -> list[str]:
    text = choose_column(config.text_field, TEXT_COLUMNS, names, where, "--text-field")
    label = choose_column(config.label_field, LABEL_COLUMNS, names, where, "--label-field")
    check_distinct({"--text-field": ("text", text), "--label-field": ("label", label)}, names, where)
    return [text, label]


def check_distinct(chosen: Mapping[str, tuple[str, str]], names: Sequence[str], where: str) -> None:
    """Refuse a column that was chosen twice. chosen: by the flag that names it, what the column holds and its name."""
    flag_of: dict[str, str] = {}
    for flag, (role, column) in chosen.items():
        if column in flag_of:
            other = flag_of[column]
            raise DataError(
                f"{where}: the column '{column}' cannot be both {chosen[other][0]} and {role}; there are: "
                f"{listed_columns(names)}. Name two different ones with {other} and {flag}."
            )
        flag_of[column] = flag


def choose_column(given: str | None, usual: Sequence[str], names: Sequence[str], where: str, flag: str) -> str:
    """The column the user named, else the first of the usual ones. Exact names go before those in other capitals."""
    candidates = usual if given is None else [given]
    exact = [name for name in candidates if name in names]
    for name in (*exact, *candidates):
        found = find_column(name, names, where)
        if found is not None:
            return found
    wanted = f"'{given}'" if given is not None else " or ".join(f"'{name}'" for name in usual)
    raise no_column(f"no column {wanted}", candidates, names, where, f"Name the right one with {flag}.")


def no_column(missing: str, wanted: Sequence[str], names: Sequence[str], where: str, advice: str) -> DataError:
    """The error for a header without the columns `wanted`. A header cut at the wrong separator has none of them."""
    hint = separator_hint(names, wanted)
    hint = f"{hint} Then give that as --separator." if hint else f" {advice}"
    return DataError(f"{where}: has {missing}; there are: {listed_columns(names)}.{hint}")


class Separated(Protocol):
    """The settings of any reader of tables."""

    @property
    def separator(self) -> str | None: ...


def separator_notice(path: Path, config: Separated) -> str | None:
    """What to tell the user if a csv file's columns were found to be separated by something else than commas."""
    if config.separator is not None or not path.name.lower().endswith((".csv", ".csv.gz")) or not path.is_file():
        return None
    with Source(path) as source:
        separator = sniffed_separator(next(source.lines(), ""))
    if separator == COMMA:
        return None
    return f"{path}: the first line has no comma; its columns are read as separated by {spoken(separator)}."


def label_of(value: object, field: str, where: str) -> str:
    """A label as a string: 1 is "1", and so is 1.0, as tables with gaps store whole numbers. Missing: empty."""
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


def filled(value: str, what: str, where: str) -> str:
    """The text or label of an example, without outer blanks; an empty one is an error. what: how it is called."""
    value = clean(value).strip()
    if not value:
        raise DataError(f"{where}: the {what} is empty. Fill it in, or remove this example.")
    return value


def unify_labels(examples: Iterable[tuple[str, ContentT, str]]) -> Iterator[tuple[str, ContentT, str]]:
    """The examples of one file with one spelling for each class, and "" for a missing label.

    The same class can be stored as 1, "1" or 1.0. All labels are needed to tell: "1.0" is the class 1 if the file also
    says "1", and "nan" is a missing label if the others are numbers. Among words it is a class: the code of a language.
    """
    found = list(examples)
    places: dict[str, str] = {}
    for where, _, label in found:
        places.setdefault(label.strip(), where)
    check_booleans(places)
    spelling = spellings(set(places))
    for where, content, label in found:
        yield where, content, spelling.get(label.strip(), label)


def spellings(labels: set[str]) -> dict[str, str]:
    """label -> how it is spelled, for those that change."""
    changed = {label: "" for label in labels if label == "NaN"}
    words = {label for label in labels if label and label.lower() != NAN}
    if all(NUMBER.fullmatch(label) for label in words):
        changed |= {label: "" for label in labels if label.lower() == NAN}
    whole = {label: str(int(match[1])) for label in labels if (match := WHOLE_FLOAT.fullmatch(label))}
    if any(integer in labels for integer in whole.values()):
        changed |= whole
    return changed


def check_booleans(places: dict[str, str]) -> None:
    """true and 1 may be one class or two; that is for the user to say."""
    boolean = next((label for label in places if label.lower() in BOOLEANS), None)
    bit = next((label for label in places if label in BITS), None)
    if boolean is not None and bit is not None:
        raise DataError(
            f"{places[boolean]}: has the label '{boolean}', but {places[bit]} has '{bit}'. Write the labels of one "
            f"class in one way."
        )


DELIMITED = {".csv": rows_of_csv, ".tsv": rows_of_tsv}
OTHER_TABLES: dict[str, ReadRows] = {".jsonl": rows_of_jsonl, ".parquet": rows_of_parquet}
TABLES = (*DELIMITED, *OTHER_TABLES)
PLAIN: dict[str, Callable[[Path, ExamplesConfig], Labelled]] = {
    **{suffix: partial(in_columns, suffix) for suffix in TABLES},
    ".txt": in_trees,
}
READERS = (
    PLAIN
    | {f"{suffix}.gz": reader for suffix, reader in PLAIN.items()}
    | dict.fromkeys([".tar.gz", ".tgz"], in_archive)
)
