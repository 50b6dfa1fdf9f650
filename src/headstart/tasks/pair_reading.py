"""Files of sentence pairs: SNLI and MultiNLI, SICK, and any table with two columns of text."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from pydantic import model_validator

from headstart.config import Section
from headstart.errors import DataError
from headstart.tasks.inputs import InputRow, in_table, read_rows, table_suffix
from headstart.tasks.reading import (
    TABLES,
    Separator,
    cell_texts,
    check_distinct,
    choose_column,
    filled,
    label_of,
    no_column,
    table_reader,
    unify_labels,
)
from headstart.text.files import Source
from headstart.text.formats import clean
from headstart.text.tables import TAB, Choose, Rows, delimited, find_column, spoken

TEXT_PAIRS = (
    ("sentence1", "sentence2"),  # SNLI, MultiNLI
    ("premise", "hypothesis"),
    ("sentence_A", "sentence_B"),  # SICK
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("question", "sentence"),
    ("first", "second"),
)
"""The usual names of the two columns, in the order in which they are tried."""
GOLD_LABEL = "gold_label"
LABEL_COLUMNS = (GOLD_LABEL, "label", "entailment_judgment", "entailment_label", "class", "is_duplicate")
DISAGREED = "-"
"""What SNLI and MultiNLI write as the gold label of a pair whose annotators did not agree on one."""
TEXT_FLAG, SECOND_FLAG, LABEL_FLAG = "--text-field", "--second-field", "--label-field"
NAME_BOTH = f"Name the columns of the two texts with {TEXT_FLAG} and {SECOND_FLAG}."
TXT, TSV = ".txt", ".tsv"


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts with the name of their class, if that is known, such as a premise and a hypothesis.

    where: their file and line, for messages. record: what else that line held.
    """

    first: str
    second: str
    label: str | None = None
    where: str = field(default="", compare=False)
    record: Mapping[str, object] | None = field(default=None, compare=False)

    @property
    def texts(self) -> dict[str, str]:
        return {"first": self.first, "second": self.second}


@dataclass(frozen=True, slots=True)
class PairFile:
    """The labelled pairs of a file. without_label: how many were left out because annotators did not agree ('-')."""

    examples: list[PairExample]
    without_label: int


class PairInputConfig(Section):
    """How files of sentence pairs are read."""

    text_field: str | None = None
    """The column or key that holds the first text; unset: sentence1, premise, sentence_A, question1, text1, text_a,
    question or first, together with the second of its kind."""

    second_field: str | None = None
    """The column or key that holds the second text; unset: sentence2, hypothesis, sentence_B, question2, text2, text_b,
    sentence or second."""

    label_field: str | None = None
    """The column or key that holds the label; unset: gold_label, label, entailment_judgment, entailment_label, class or
    is_duplicate."""

    separator: Separator = None
    """The character between the columns of csv and tsv files; unset: a tab in tsv files, and in csv files a comma, or
    the semicolon or tab that the header has instead."""

    @model_validator(mode="after")
    def distinct_fields(self) -> PairInputConfig:
        if (self.text_field is None) != (self.second_field is None):
            given, missing = (TEXT_FLAG, SECOND_FLAG) if self.second_field is None else (SECOND_FLAG, TEXT_FLAG)
            raise ValueError(f"{given} names one of two texts; name the other with {missing}, or neither")
        flags = {TEXT_FLAG: self.text_field, SECOND_FLAG: self.second_field, LABEL_FLAG: self.label_field}
        seen: dict[str, str] = {}
        for flag, name in flags.items():
            if name is not None and name in seen:
                raise ValueError(f"{seen[name]} and {flag} must differ; got '{name}' for both")
            seen |= {} if name is None else {name: flag}
        return self


# --- labelled pairs ---------------------------------------------------------------------------------------------------


def read_pairs(path: Path, config: PairInputConfig) -> PairFile:
    """The pairs of a .csv, .tsv, .jsonl or .parquet file, or of a tab-separated .txt, in order; also with .gz."""
    agreed: list[tuple[str, tuple[str, ...], str]] = []
    without_label = 0
    for where, row in table_rows(path, config, partial(choose_columns, config)):
        *text_fields, label_field = row
        if is_disagreement(label_field, row[label_field]):
            without_label += 1
        else:
            label = label_of(row[label_field], label_field, where)
            agreed.append((where, cell_texts(row, text_fields, where), label))
    if not agreed:
        left_out = f" besides {without_label:,} without a label ('{DISAGREED}')" if without_label else ""
        raise DataError(f"{path}: holds no pair{left_out}. Give a file with at least one pair of texts and its label.")
    examples = [
        PairExample(
            filled(first, "first text", where),
            filled(second, "second text", where),
            filled(label, "label", where),
            where,
        )
        for where, (first, second), label in unify_labels(agreed)
    ]
    return PairFile(examples, without_label)


def count_without_label(path: Path, config: PairInputConfig) -> int:
    """`PairFile.without_label`, from the column with the labels alone."""
    found = 0
    for _, row in table_rows(path, config, partial(choose_label, config)):
        ((label_field, label),) = row.items()
        if not is_gold_label(label_field):
            return 0
        found += is_disagreement(label_field, label)
    return found


def is_gold_label(field: str) -> bool:
    return field.strip().casefold() == GOLD_LABEL


def is_disagreement(field: str, label: object) -> bool:
    """Only a column called 'gold_label' uses '-' for this; elsewhere it may be a class."""
    return isinstance(label, str) and label.strip() == DISAGREED and is_gold_label(field)


def table_rows(path: Path, config: PairInputConfig, choose: Choose) -> Rows:
    suffix = suffix_of(path, config)
    with Source(path) as source:
        yield from table_reader(suffix, config.separator)(source, choose)


def suffix_of(path: Path, config: PairInputConfig) -> str:
    """Which kind of table a file is. SICK, SNLI and MultiNLI call their tab-separated files .txt."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give a file of pairs.")
    if not path.exists():
        raise DataError(f"{path}: there is no such file.")
    if suffix := table_suffix(path):
        return suffix
    if not path.name.lower().removesuffix(".gz").endswith(TXT):
        known = ", ".join(f"{suffix}, {suffix}.gz" for suffix in (*TABLES, TXT))
        raise DataError(f"{path}: files of this kind hold no pairs; known are {known}.")
    with Source(path) as source:
        header = next(source.lines(), "")
    mark = config.separator or TAB
    if mark not in header:
        raise DataError(
            f"{path}:1: expected the names of columns, separated by {spoken(mark)}, as in SICK's files; got "
            f"{header.strip()[:60]!r}. Name the columns there, or give a .csv, .tsv or .jsonl file."
        )
    return TSV


def choose_columns(config: PairInputConfig, names: Sequence[str], where: str) -> list[str]:
    first, second = choose_texts(config, names, where)
    (label,) = choose_label(config, names, where)
    chosen = {TEXT_FLAG: ("first text", first), SECOND_FLAG: ("second text", second), LABEL_FLAG: ("label", label)}
    check_distinct(chosen, names, where)
    return [first, second, label]


def choose_label(config: PairInputConfig, names: Sequence[str], where: str) -> list[str]:
    return [choose_column(config.label_field, LABEL_COLUMNS, names, where, LABEL_FLAG)]


def choose_texts(config: PairInputConfig, names: Sequence[str], where: str) -> list[str]:
    """The two columns that the user named, else the first of the usual two."""
    if config.text_field is not None and config.second_field is not None:
        first = choose_column(config.text_field, (), names, where, TEXT_FLAG)
        second = choose_column(config.second_field, (), names, where, SECOND_FLAG)
        check_distinct({TEXT_FLAG: ("first text", first), SECOND_FLAG: ("second text", second)}, names, where)
        return [first, second]
    if found := usual_texts(names, where):
        return found
    usual = ", ".join("/".join(pair) for pair in TEXT_PAIRS)
    raise no_column(f"no two columns such as {usual}", [*chain(*TEXT_PAIRS)], names, where, NAME_BOTH)


def usual_texts(names: Sequence[str], where: str) -> list[str] | None:
    """Exact names go before those in other capitals, as in `choose_column`."""
    exact = [pair for pair in TEXT_PAIRS if set(pair) <= set(names)]
    for pair in (*exact, *TEXT_PAIRS):
        found = [column for name in pair if (column := find_column(name, names, where)) is not None]
        if len(found) == len(pair):
            return found
    return None


# --- pairs to be labelled ---------------------------------------------------------------------------------------------


def read_pair_inputs(source: str, config: PairInputConfig) -> Iterator[PairExample]:
    """The pairs of a file, or of standard input if `source` is "-", one at a time, without labels.

    By its suffix, a file is a table or JSON lines. Any other file, and standard input, is JSON lines if its first line
    is a JSON object, and otherwise a pair per line, with a tab between the texts; a header may name the columns.
    """
    for row in read_rows(source, partial(choose_texts, config), partial(a_pair_per_line, config), config.separator):
        first, second = row.texts
        yield PairExample(first, second, None, row.where, row.record)


def a_pair_per_line(config: PairInputConfig, source: Source, lines: Iterator[str]) -> Iterator[InputRow]:
    mark = config.separator or TAB
    first = next(lines)
    header = first.rstrip("\r\n").split(mark)
    where = f"{source.path}:{source.line}"
    if config.text_field is not None or usual_texts(header, where) is not None:
        yield from in_table(partial(below_header, chain([first], lines), mark), source, partial(choose_texts, config))
        return
    for line in chain([first], lines):
        yield pair_of(line, mark, f"{source.path}:{source.line}")


def below_header(lines: Iterator[str], mark: str, source: Source, choose: Choose) -> Rows:
    """Rows as in a tsv file, of which the first line was read already to see whether it is a header."""
    return delimited(source, lines, choose, {"delimiter": mark, "quoting": csv.QUOTE_NONE}, exact=True)


def pair_of(line: str, mark: str, where: str) -> InputRow:
    """A blank line is a pair of empty texts, so that its answer is empty and the others keep their places."""
    if not line.strip():
        return InputRow(where, ("", ""), None)
    texts = clean(line.rstrip("\r\n")).split(mark)
    if len(texts) != 2:
        raise DataError(
            f"{where}: expected two texts with one {'tab' if mark == TAB else spoken(mark)} between them, got "
            f"{line.strip()[:60]!r}. Put each pair on a line of its own; texts that contain tabs can be given as JSON "
            f"lines with the keys 'first' and 'second'."
        )
    return InputRow(where, (texts[0], texts[1]), None)
