"""Labelled sentences of semantic role labelling: column files of PropBank or CoNLL-2012, and JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headstart.errors import ConfigError, DataError
from headstart.tasks.role_columns import (
    CONLL2012,
    FRAME,
    LEMMA,
    NONE,
    UNKNOWN_FRAME,
    WORD,
    Block,
    Layout,
    RoleColumnFile,
    spans_in,
)
from headstart.tasks.role_json import Read, labelled_sentences
from headstart.tasks.roles import Predicate, RoleSentence, overlap_notes, with_verb, without_overlaps
from headstart.tasks.spans import Span
from headstart.tasks.tag_inputs import JSON
from headstart.text.files import Source

SHOWN = 8
"""Predicates that a message names."""


@dataclass(frozen=True, slots=True)
class RoleFile:
    """The sentences of one file. overlapping: one phrase for each argument that was left out."""

    path: Path
    sentences: list[RoleSentence]
    overlapping: list[str]

    def notices(self) -> list[str]:
        """What the user should know about how the file was read."""
        return [f"{self.path}: {overlap_notice(self.overlapping)}"] if self.overlapping else []


def overlap_notice(overlapping: Sequence[str]) -> str:
    """overlapping: a phrase for each argument that was left out."""
    count = len(overlapping)
    some = "1 argument overlaps" if count == 1 else f"{count:,} arguments overlap"
    return (
        f"{some} another of the same predicate and cannot be learned, because BIO tags hold one role per word; left "
        f"out, such as {overlapping[0]}."
    )


def read_roles(path: str | Path, words_field: str | None = None) -> RoleFile:
    """JSON lines where the name ends in .jsonl or .jsonl.gz, else columns, whose layout the file itself tells.

    words_field: of JSON lines, the key with the words.
    """
    path = Path(path).expanduser()
    is_json = path.name.lower().endswith(JSON)
    if words_field is not None and not is_json:
        raise ConfigError(f"{path}: is a column file, which has no field '{words_field}'. Remove --text-field.")
    with Source(path) as source:
        found = list(labelled_sentences(source, words_field) if is_json else in_columns(RoleColumnFile(source)))
    if not found:
        raise DataError(f"{path}: holds no sentence. Give a file with a sentence's words and predicates on each line.")
    return RoleFile(path, [sentence for sentence, _ in found], [note for _, notes in found for note in notes])


def in_columns(file: RoleColumnFile) -> Iterator[Read]:
    """The sentences of a column file, every predicate with its arguments."""
    layout = file.known_layout()
    for block in file.blocks:
        rows = file.rows(block)
        predicates = predicates_of(rows, layout)
        check_width(file, block, rows, predicates)
        words = words_of(rows)
        labelled: list[Predicate] = []
        notes: list[str] = []
        for column, predicate in enumerate(predicates, layout.before):
            found = spans_in([row[column] for row in rows], column + 1, partial(file.where, block))
            where = file.where(block, predicate.word)
            check_verb(found, predicate.word, words, column + 1, where)
            kept, left = without_overlaps(found)
            labelled.append(replace(predicate, arguments=kept))
            notes += overlap_notes(left, predicate.word, words, where)
        yield RoleSentence(words, tuple(labelled), file.where(block), columns=file.columns(block)), notes


def words_of(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple([row[WORD] for row in rows])


def predicates_of(rows: Sequence[Sequence[str]], layout: Layout) -> list[Predicate]:
    """The words with a frame, without their arguments."""
    return [
        Predicate(number, None if row[LEMMA] == NONE else row[LEMMA], frame_of(row, layout))
        for number, row in enumerate(rows)
        if row[FRAME] != NONE
    ]


def frame_of(row: Sequence[str], layout: Layout) -> str | None:
    """find.01, which CoNLL-2012 writes in two columns: find, 01."""
    if row[FRAME] == UNKNOWN_FRAME:
        return None
    return f"{row[LEMMA]}.{row[FRAME]}" if layout == CONLL2012 else row[FRAME]


def check_width(
    file: RoleColumnFile, block: Block, rows: Sequence[Sequence[str]], predicates: Sequence[Predicate]
) -> None:
    layout = file.known_layout()
    there = len(rows[0]) - layout.before - layout.after
    if there == len(predicates):
        return
    names = ", ".join(rows[predicate.word][WORD] for predicate in predicates[:SHOWN]) or "none"
    raise DataError(
        f"{file.where(block)}: this sentence has {there} argument columns (of {len(rows[0])}, in the layout of "
        f"{layout.name}), but {len(predicates)} predicates, the words with a frame in column {FRAME + 1}: "
        f"{names:.60}. Each predicate needs one column."
    )


def check_verb(spans: list[Span], word: int, words: Sequence[str], column: int, where: str) -> None:
    """The bracket around the predicate itself is what ties a column to it."""
    if with_verb(spans, word) != spans:
        raise DataError(
            f"{where}: the word '{words[word]}' has a frame in column {FRAME + 1}, but no bracket (V*) around it in "
            f"column {column}, which is that of its arguments. Add it, or remove the frame and the column."
        )
