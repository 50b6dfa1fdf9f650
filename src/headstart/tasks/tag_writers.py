"""How tagged sentences are shown: columns, a coloured view on a terminal, a page."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from headstart.atomic import write_text
from headstart.tasks.base import Writer
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.spans import spans_of
from headstart.tasks.tag_view import MarkedSentence, html_page, terminal_view

WIDTH = 1 << 20
"""Lines are not wrapped here: the terminal does that."""


class ColumnLines(Writer[TaggedSentence, Any]):
    """`word TAG`, a blank line after each sentence; the columns of a CoNLL file stay before the tag."""

    def lines(self, pairs: Iterable[tuple[TaggedSentence, Any]]) -> str:
        found: list[str] = []
        for example, answer in pairs:
            shown = example.words if example.lines is None else example.lines
            ends = {end for _, end in example.sentence_bounds}
            for number, (line, tag) in enumerate(zip(shown, answer.tags, strict=True), 1):
                found.append(f"{line}{'	' if '	' in line else ' '}{tag}\n")
                if number in ends:
                    found.append("\n")
        return "".join(found)


class ColouredView(Writer[TaggedSentence, Any]):
    """Entities in colours, each with its type."""

    def lines(self, pairs: Iterable[tuple[TaggedSentence, Any]]) -> str:
        console = Console(file=StringIO(), force_terminal=True, color_system="256", width=WIDTH, soft_wrap=True)
        with console.capture() as captured:
            for example, answer in pairs:
                console.print(terminal_view(shown(example, answer)), highlight=False)
        return captured.get()


class EntityPage:
    """A page of sentences with their entities marked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sentences: list[MarkedSentence] = []

    def add(self, pairs: Iterable[tuple[TaggedSentence, Any]]) -> None:
        self.sentences += [shown(example, answer) for example, answer in pairs]

    def save(self) -> None:
        write_text(self.path, html_page(self.sentences, "Entities"))


def shown(example: TaggedSentence, answer: Any) -> MarkedSentence:
    return MarkedSentence(example.words, spans_of(answer.tags), example.text, example.offsets)
