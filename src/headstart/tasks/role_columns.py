"""The column files of semantic role labelling: one word per line, one column of brackets for each predicate.

PropBank's releases (gold_conll): document, sentence, number, word, part of speech, parse, predicate lemma, frame, then
the argument columns. CoNLL-2012: document, part, number, word, part of speech, parse, predicate lemma, frameset, word
sense, speaker, named entities, the argument columns, coreference. In both, the words with a frame are the predicates,
and the argument columns stand in their order. Lines such as `#begin document` are between sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headstart.errors import DataError
from headstart.tasks.conll import LINE_END, SPACES
from headstart.tasks.spans import Span
from headstart.text.files import Source

NUMBER, WORD, LEMMA, FRAME = 2, 3, 6, 7
NONE = "-"
UNKNOWN_FRAME = "_"
"""The frame of a predicate whose sense nobody said; `-` would say that the word is no predicate."""
COMMENT = "#"
CELL = re.compile(r"((?:\([^()*\s]+)*)\*(\)*)")


@dataclass(frozen=True, slots=True)
class Layout:
    """How many columns stand before those of the arguments, and how many after them."""

    name: str
    before: int
    after: int


PROPBANK = Layout("PropBank", 8, 0)
CONLL2012 = Layout("CoNLL-2012", 11, 1)


@dataclass(frozen=True, slots=True)
class Columns:
    """The lines of one sentence in a column file, and the blank lines and comments around them, without their ends."""

    layout: Layout
    tabs: bool
    lines: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Of the last sentence: the lines up to the end of the file."""

    def rows(self) -> list[list[str]]:
        return [cells_of(line, self.tabs) for line in self.lines]


@dataclass(slots=True)
class Block:
    """The lines of one sentence. first: the number of the first one in the file, from 1."""

    first: int
    lines: list[str]
    before: list[str]


class RoleColumnFile:
    """The sentences of a column file, and which layout it has, or None if it has neither."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.blocks, self.rest = blocks_of(source)
        if not self.blocks:
            raise DataError(f"{self.path}: holds no sentence. Give a file with a word on each line.")
        self.tabs = any("\t" in line for block in self.blocks for line in block.lines)
        self.layout = layout_of(cells_of(self.blocks[0].lines[0], self.tabs))

    def where(self, block: Block, row: int = 0) -> str:
        return f"{self.path}:{block.first + row}"

    def known_layout(self) -> Layout:
        if self.layout is not None:
            return self.layout
        first = self.blocks[0]
        cells = cells_of(first.lines[0], self.tabs)
        raise DataError(
            f"{self.where(first)}: has {len(cells)} columns, separated by {'tabs' if self.tabs else 'spaces'}. This is "
            f"neither PropBank's layout (8 columns, the third the word's number, then one of brackets for each "
            f"predicate) nor that of CoNLL-2012 (11, those, coreference): {first.lines[0].strip()[:40]!r}."
        )

    def rows(self, block: Block) -> list[list[str]]:
        """The cells of a sentence, the same number for every word."""
        rows = [cells_of(line, self.tabs) for line in block.lines]
        layout = self.known_layout()
        least = layout.before + layout.after
        for number, row in enumerate(rows):
            if len(row) != len(rows[0]) or len(row) < least:
                wanted = f"line {block.first}, the first of this sentence, has {len(rows[0])}"
                wanted = wanted if number else f"the layout of {layout.name} has at least {least}"
                raise DataError(
                    f"{self.where(block, number)}: has {len(row)} columns, but {wanted}. Every word of a sentence "
                    f"needs the same columns, and a blank line separates sentences."
                )
            if not row[WORD].strip():
                raise DataError(f"{self.where(block, number)}: column {WORD + 1}, the word, is empty. Fill it in.")
        return rows

    def columns(self, block: Block) -> Columns:
        """What is needed to write a sentence back."""
        after = tuple(self.rest) if block is self.blocks[-1] else ()
        return Columns(self.known_layout(), self.tabs, tuple(block.lines), tuple(block.before), after)


def blocks_of(source: Source) -> tuple[list[Block], list[str]]:
    """The sentences of a file, and the lines after the last one."""
    blocks: list[Block] = []
    between: list[str] = []
    inside = False
    for line in source.lines():
        text = line.rstrip(LINE_END)
        is_word = bool(text.strip(SPACES)) and not text.startswith(COMMENT)
        if not is_word:
            between.append(text)
        elif inside:
            blocks[-1].lines.append(text)
        else:
            blocks.append(Block(source.line, [text], between))
            between = []
        inside = is_word
    return blocks, between


def cells_of(line: str, tabs: bool) -> list[str]:
    return line.split("\t") if tabs else [cell for cell in line.split(" ") if cell]


def layout_of(cells: Sequence[str]) -> Layout | None:
    """By a word's cells: after PropBank's 8 columns comes a bracket, after the 8 of CoNLL-2012 the word's sense."""
    if len(cells) < PROPBANK.before or not cells[NUMBER].isdecimal():
        return None
    if len(cells) == PROPBANK.before or "*" in cells[PROPBANK.before]:
        return PROPBANK
    return CONLL2012 if len(cells) >= CONLL2012.before + CONLL2012.after else None


def spans_in(cells: Sequence[str], column: int, where: Callable[[int], str]) -> list[Span]:
    """The arguments in a column of brackets. column: its number, from 1; where: the place of a row, for messages."""
    spans: list[Span] = []
    opened: list[tuple[int, str]] = []
    for row, cell in enumerate(cells):
        if cell == "*":  # five of six cells of a corpus
            continue
        brackets = CELL.fullmatch(cell)
        if brackets is None:
            raise DataError(
                f"{where(row)}: column {column} needs a bracket such as (ARG1*, * or *), got {cell!r:.40}. Correct it."
            )
        opened += [(row, role) for role in brackets[1].split("(")[1:]]
        for _ in brackets[2]:
            if not opened:
                raise DataError(
                    f"{where(row)}: column {column} closes a bracket that was not opened: {cell!r:.40}. Each ')' needs "
                    f"a '(ROLE*' before it in the same sentence."
                )
            start, role = opened.pop()
            spans.append(Span(start, row + 1, role))
    if opened:
        row, role = opened[-1]
        raise DataError(
            f"{where(row)}: column {column} opens the bracket '({role}*', which is not closed in this sentence. Each "
            f"'(ROLE*' needs a ')'."
        )
    return spans


def brackets_of(arguments: Iterable[Span], length: int) -> list[str]:
    """A column of brackets for arguments that do not overlap."""
    cells = ["*"] * length
    for start, end, role in arguments:
        cells[start] = f"({role}*"
        cells[end - 1] += ")"
    return cells
