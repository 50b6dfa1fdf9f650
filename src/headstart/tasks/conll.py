"""Tagged sentences: CoNLL's column files, and JSON lines.

A column file has a word per line, its columns separated by spaces or by tabs, and a blank line between sentences.
Lines that are no word (-DOCSTART-, comments, CoNLL-U's ranges and empty nodes) are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from headstart.errors import ConfigError, DataError
from headstart.tasks.reading import choose_column
from headstart.text.files import Source
from headstart.text.formats import clean_word
from headstart.text.tables import rows_of_jsonl

WORD_FIELDS = ("words", "tokens")
TAG_FIELDS = ("tags", "labels", "ner_tags")
DOCUMENT_START = "-DOCSTART-"
# Only these separate: a no-break space may be part of a word.
SPACES = " \t"
LINE_END = "\r\n"
CONLLU_WIDTH, CONLLU_WORD, CONLLU_TAG = 10, 1, 3  # the word is FORM, the tag UPOS unless another column is asked for
CONLLU_ID = re.compile(r"\d+(?P<no_word>[-.]\d+)?")
COMMENT = re.compile(r"#(?: |begin document|end document)")


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words, each with its tag where tags are known, and the file and line of the first.

    Of a plain text: the text, the characters (start, end) of each word, and the words (first, end) of each sentence.
    lines: those of a column file, without their ends.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    where: str
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None
    sentences: tuple[tuple[int, int], ...] | None = None
    lines: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    @property
    def sentence_bounds(self) -> Sequence[tuple[int, int]]:
        """`sentences`, or the one sentence that all words are."""
        return [(0, len(self.words))] if self.sentences is None else self.sentences


def read_tagged(
    path: str | Path, column: int | None = None, *, fields: tuple[str | None, str | None] = (None, None)
) -> list[TaggedSentence]:
    """The tagged sentences of a file: JSON lines where its name ends in .jsonl or .jsonl.gz, else columns.

    column: of a column file, the tag's; fields: of JSON lines, the keys with the words and with the tags.
    """
    path = Path(path).expanduser()
    is_json = path.name.lower().endswith((".jsonl", ".jsonl.gz"))
    if is_json and column is not None:
        raise ConfigError(f"{path}: is JSON lines, which have no columns. Name the key with --label-field.")
    if is_json:
        return read_jsonl(path, *fields)
    if fields != (None, None):
        raise ConfigError(f"{path}: is a column file. Choose the tag's column with --column, not with a field's name.")
    return read_columns(path, column)


def read_columns(path: str | Path, column: int | None = None, tag_required: bool = True) -> list[TaggedSentence]:
    """The sentences of a column file (packed if its name ends in .gz).

    column: which one holds the tag, from 0, or from -1 backwards; unset: the last one, or UPOS of CoNLL-U. The word is
    the first one, or FORM of CoNLL-U. A file without that column has no tags, an error if they are required.
    """
    file = ColumnFile(Path(path).expanduser())
    column = file.tag_column(column)
    if column is None and tag_required:
        raise DataError(
            f"{file.where(file.first)}: has {file.width} columns, none of them the tag: "
            f"{file.lines[file.first].strip()[:40]!r}. Each line needs a word and its tag."
        )
    sentences = []
    for numbers in file.sentences:
        rows = [file.cells(number) for number in numbers]
        tags = None if column is None else tuple([row[column] for row in rows])
        words = tuple([row[file.word] for row in rows])
        lines = tuple([file.lines[number].rstrip(LINE_END) for number in numbers])
        sentences.append(TaggedSentence(words, tags, file.where(numbers[0]), lines=lines))
    return sentences


class ColumnFile:
    """The lines of a column file, and which of them are the words of which sentence.

    sentences: the line numbers of each sentence's words, from 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with Source(path) as source:
            self.lines = list(source.lines())
        likely = [n for n, line in enumerate(self.lines) if self._has_columns(line) and not COMMENT.match(line)]
        if not likely:
            raise DataError(f"{path}: holds no sentence. Give a file with a word and its tag on each line.")
        self.first = likely[0]
        self.tabs = any("\t" in self.lines[number] for number in likely)
        self.width = len(self.cells(self.first))
        numbered = CONLLU_ID.fullmatch(self.cells(self.first)[0]) is not None
        self.conllu = self.tabs and self.width == CONLLU_WIDTH and numbered
        self.word = CONLLU_WORD if self.conllu else 0
        self.sentences = [words for words in self._blocks() if words]

    def where(self, number: int) -> str:
        return f"{self.path}:{number + 1}"

    def cells(self, number: int) -> list[str]:
        line = self.lines[number].rstrip(LINE_END)
        return line.split("\t") if self.tabs else [cell for cell in line.split(" ") if cell]

    def tag_column(self, column: int | None) -> int | None:
        """The tag's column, counted from 0, or None where the file has no such column beside the words."""
        if column is None:
            column = CONLLU_TAG if self.conllu else -1
        column = column if column >= 0 else self.width + column
        return column if 0 <= column < self.width and column != self.word else None

    @staticmethod
    def _has_columns(line: str) -> bool:
        return bool(line.strip(SPACES + LINE_END)) and not line.startswith(DOCUMENT_START)

    def _blocks(self) -> Iterator[list[int]]:
        """The words of each run of lines between blank ones."""
        words: list[int] = []
        for number, line in enumerate(self.lines):
            if not self._has_columns(line):
                yield words
                words = []
            elif not self._is_comment(line, number, bool(words)) and self._is_word(number):
                words.append(number)
        yield words

    def _is_comment(self, line: str, number: int, in_sentence: bool) -> bool:
        """A # is also a word: "# # I-NP" has the columns of one, "# text = ..." stands before a sentence."""
        if not COMMENT.match(line):
            return False
        if in_sentence and line.startswith("# ") and not self.tabs:
            return False
        cells = self.cells(number)
        return self.tabs or len(cells) != self.width or "=" in cells[1:3] or not line.startswith("# ")

    def _is_word(self, number: int) -> bool:
        cells = self.cells(number)
        if len(cells) != self.width:
            separator = "tabs" if self.tabs else "spaces"
            raise DataError(
                f"{self.where(number)}: has {len(cells)} columns, separated by {separator}, but line {self.first + 1} "
                f"has {self.width}: {self.lines[number].strip()[:40]!r}. Every word needs the same columns, and "
                f"sentences are separated by a blank line."
            )
        if not all(cells):
            raise DataError(f"{self.where(number)}: column {cells.index('') + 1} is empty. Fill it in, or remove it.")
        number_of = CONLLU_ID.fullmatch(cells[0]) if self.conllu else None
        return number_of is None or number_of["no_word"] is None


def read_jsonl(
    path: str | Path, words_field: str | None = None, tags_field: str | None = None, *, with_tags: bool = True
) -> list[TaggedSentence]:
    """The sentences of JSON lines such as {"words": ["In", "Rome"], "tags": ["O", "B-LOC"]}.

    with_tags: False reads the words alone, whatever else a line holds.
    """
    path = Path(path).expanduser()
    sentences = []
    with Source(path) as source:
        for where, row in rows_of_jsonl(source, partial(choose_fields, words_field, tags_field, with_tags)):
            (field, words), *rest = row.items()
            sentence = strings_of(words, field, where)
            if not sentence:
                raise DataError(f"{where}: '{field}' holds no word. Fill it in, or remove this line.")
            tags = None
            if rest:
                tags = strings_of(rest[0][1], rest[0][0], where)
                if len(tags) != len(sentence):
                    raise DataError(
                        f"{where}: has {len(sentence):,} words in '{field}' but {len(tags):,} tags in '{rest[0][0]}'. "
                        f"Each word needs one tag."
                    )
            sentences.append(TaggedSentence(sentence, tags, where))
    if not sentences:
        raise DataError(f"{path}: holds no sentence. Give a file with a sentence's words and tags on each line.")
    return sentences


def choose_fields(words: str | None, tags: str | None, with_tags: bool, names: Sequence[str], where: str) -> list[str]:
    chosen = [choose_column(words, WORD_FIELDS, names, where, "--text-field")]
    if with_tags:
        chosen.append(choose_column(tags, TAG_FIELDS, names, where, "--label-field"))
    return chosen


def strings_of(value: object, field: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise DataError(f'{where}: \'{field}\' must be a list of strings such as ["In", "Rome"], got {value!r:.60}.')
    for one in value:
        if not isinstance(one, str) or not one.strip():
            raise DataError(f"{where}: '{field}' must hold strings, none of them empty; got {one!r:.60}.")
    return tuple([clean_word(one) for one in value])
