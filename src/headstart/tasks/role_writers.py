"""How roles are written: columns as PropBank and CoNLL-2012 have them, a view on a terminal, a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console

from headstart.atomic import write_text
from headstart.tasks.base import Task, Writer
from headstart.tasks.prediction_writers import one_line
from headstart.tasks.role_columns import (
    CONLL2012,
    FRAME,
    LEMMA,
    NONE,
    PROPBANK,
    UNKNOWN_FRAME,
    Layout,
    brackets_of,
)
from headstart.tasks.role_view import html_page, terminal_view
from headstart.tasks.roles import Predicate, Roles, RoleSentence, with_verb, without_overlaps
from headstart.tasks.tag_writers import WIDTH

Pairs = Iterable[tuple[RoleSentence, Roles]]
NO_PARSE = "*"


class RoleColumns(Writer[RoleSentence, Roles]):
    """The columns of the file that a sentence was read from, with its predicates and their arguments.

    A sentence from elsewhere has PropBank's layout, with `-` for what is not known. A blank line separates sentences;
    those of a file keep the comments and blank lines around them.
    """

    def __init__(self, task: Task[RoleSentence, Roles]) -> None:
        super().__init__(task)
        self.count = 0
        self.separated = True

    def lines(self, pairs: Pairs) -> str:
        return "".join(f"{line}\n" for sentence, roles in pairs for line in self.sentence(sentence, roles))

    def sentence(self, sentence: RoleSentence, roles: Roles) -> list[str]:
        if not sentence.words:
            return []
        columns = sentence.columns
        before = [] if columns is None else list(columns.before)
        if not self.separated and not any(not line.strip() for line in before):
            before = ["", *before]
        after = [] if columns is None else list(columns.after)
        self.separated = bool(after) and not after[-1].strip()
        self.count += 1
        return [*before, *column_lines(sentence, roles, self.count - 1), *after]


def column_lines(sentence: RoleSentence, roles: Roles, number: int) -> list[str]:
    """number: that of the sentence, from 0, which is written if it was not read from columns."""
    columns = sentence.columns
    if columns is None:
        layout, tabs, rows = PROPBANK, True, new_rows(sentence.words, number)
    else:
        layout, tabs, rows = columns.layout, columns.tabs, columns.rows()
    frames = {predicate.word: predicate for predicate in roles.predicates}
    brackets = [predicate_column(predicate, len(rows)) for predicate in roles.predicates]
    separator = "\t" if tabs else " "
    lines = []
    for word, row in enumerate(rows):
        first, last = row[: layout.before], row[len(row) - layout.after :]
        first[LEMMA], first[FRAME] = lemma_and_frame(frames.get(word), row, layout)
        lines.append(separator.join([*first, *(column[word] for column in brackets), *last]))
    return lines


def new_rows(words: Sequence[str], number: int) -> list[list[str]]:
    return [
        [NONE, str(number), str(place), one_line(word), NONE, NO_PARSE, NONE, NONE] for place, word in enumerate(words)
    ]


def predicate_column(predicate: Predicate, length: int) -> list[str]:
    """A predicate's brackets, always with its V, without which no reader could tell whose they are."""
    arguments, _ = without_overlaps(with_verb(predicate.arguments or (), predicate.word))
    return brackets_of(arguments, length)


def lemma_and_frame(predicate: Predicate | None, row: Sequence[str], layout: Layout) -> tuple[str, str]:
    """The two cells that tell whether a word is a predicate. CoNLL-2012 has lemmas of other words, too: they stay."""
    if predicate is None:
        return (row[LEMMA] if layout == CONLL2012 else NONE), NONE
    lemma = predicate.lemma or row[LEMMA]
    frame = predicate.frame or UNKNOWN_FRAME
    if layout == CONLL2012:
        frame = frame.removeprefix(f"{lemma}.")
    return one_line(lemma), one_line(frame)


class RoleView(Writer[RoleSentence, Roles]):
    """Each sentence, and its arguments in coloured brackets below it, a line for each predicate."""

    def lines(self, pairs: Pairs) -> str:
        console = Console(file=StringIO(), force_terminal=True, color_system="256", width=WIDTH, soft_wrap=True)
        with console.capture() as captured:
            for sentence, roles in pairs:
                console.print(terminal_view(sentence, roles), highlight=False)
        return captured.get()


class RolesPage:
    """A page of sentences with the arguments of every predicate marked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pairs: list[tuple[RoleSentence, Roles]] = []

    def add(self, pairs: Pairs) -> None:
        self.pairs += pairs

    def save(self) -> None:
        write_text(self.path, html_page(self.pairs, "Semantic roles"))
