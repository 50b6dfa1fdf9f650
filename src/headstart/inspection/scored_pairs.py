"""Files of pairs that people scored for similarity: of words (WordSim, SimLex), or of sentences (SICK, STS-B)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from headstart.errors import DataError
from headstart.tasks.pair_reading import (
    LABEL_FLAG,
    SECOND_FLAG,
    TEXT_FLAG,
    PairInputConfig,
    choose_texts,
    table_rows,
)
from headstart.tasks.reading import cell_texts, check_distinct, choose_column, filled
from headstart.text.files import Source
from headstart.text.tables import COMMA, TAB, find_column

WORD_PAIRS = (("word1", "word2"), ("Word 1", "Word 2"))
"""The columns of SimLex-999 and of WordSim-353."""
SCORE_COLUMNS = (
    *("relatedness_score", "similarity_score", "score", "similarity", "SimLex999", "Human (mean)"),
    *("gold", "rating", "label"),
)
LISTS = (".txt", ".tsv", ".csv")
"""Files that may have no header."""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Two words or two sentences, and the score that people gave them; the scale does not matter."""

    first: str
    second: str
    score: float
    where: str = field(default="", compare=False)


def read_scored_pairs(path: Path, config: PairInputConfig | None = None) -> list[ScoredPair]:
    """The pairs of a table with named columns, or of lines `first second score` without a header."""
    config = config or PairInputConfig()
    path = path.expanduser()
    names_columns = config.text_field is not None or config.label_field is not None
    is_list = not names_columns and begins_as_list(path, config)
    pairs = list(listed(path, config) if is_list else in_table(path, config))
    if not pairs:
        raise DataError(f"{path}: holds no pair. Give lines with two words, or texts, and their score.")
    return pairs


def begins_as_list(path: Path, config: PairInputConfig) -> bool:
    """Whether the first line is a pair with its score already, and no header."""
    if not path.is_file() or not path.name.lower().removesuffix(".gz").endswith(LISTS):
        return False
    with Source(path) as source:
        first = next(source.lines(), "")
    cells = cells_of(first, path, config)
    if len(cells) == 3 and number_in(cells[2]) is not None:
        return True
    if ".txt" in path.name.lower() and (config.separator or TAB) not in first:
        raise DataError(
            f"{path}:1: expected two words and their score, or the names of columns with tabs between them; got "
            f"{first.strip()[:60]!r}."
        )
    return False


def cells_of(line: str, path: Path, config: PairInputConfig) -> list[str]:
    """Separated by tabs, in csv files by commas, or else by white space."""
    is_csv = path.name.lower().removesuffix(".gz").endswith(".csv")
    mark = config.separator or (TAB if TAB in line else COMMA if is_csv else None)
    return [cell.strip() for cell in line.split(mark)]


def listed(path: Path, config: PairInputConfig) -> Iterator[ScoredPair]:
    with Source(path) as source:
        for line in source.lines():
            if not line.strip():
                continue
            where = f"{path}:{source.line}"
            cells = cells_of(line, path, config)
            if len(cells) != 3:
                raise DataError(
                    f"{where}: expected two words, or texts, and their score, as in the lines before; got "
                    f"{line.strip()[:60]!r}."
                )
            yield scored(cells[:2], cells[2], where)


def in_table(path: Path, config: PairInputConfig) -> Iterator[ScoredPair]:
    for where, row in table_rows(path, config, partial(choose_columns, config)):
        *fields, score = row
        yield scored(cell_texts(row, fields, where), row[score], where)


def choose_columns(config: PairInputConfig, names: Sequence[str], where: str) -> list[str]:
    first, second = words_named(config, names, where) or choose_texts(config, names, where)
    score = choose_column(config.label_field, SCORE_COLUMNS, names, where, LABEL_FLAG)
    chosen = {TEXT_FLAG: ("first text", first), SECOND_FLAG: ("second text", second), LABEL_FLAG: ("score", score)}
    check_distinct(chosen, names, where)
    return [first, second, score]


def words_named(config: PairInputConfig, names: Sequence[str], where: str) -> list[str] | None:
    if config.text_field is not None:
        return None
    for pair in WORD_PAIRS:
        found = [column for name in pair if (column := find_column(name, names, where)) is not None]
        if len(found) == len(pair):
            return found
    return None


def scored(texts: Sequence[str], score: object, where: str) -> ScoredPair:
    number = number_in(score)
    if number is None:
        raise DataError(
            f"{where}: the score must be a number; got {score!r:.60}. Correct it, or name the right column with "
            f"{LABEL_FLAG}."
        )
    first, second = (
        filled(text, title, where) for text, title in zip(texts, ("first text", "second text"), strict=True)
    )
    return ScoredPair(first, second, number, where)


def number_in(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
