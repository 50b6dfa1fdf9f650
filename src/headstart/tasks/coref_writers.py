"""How resolved documents are written: CoNLL-2012's columns, JSON lines, a coloured view on a terminal, a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from headstart.atomic import write_text
from headstart.tasks.base import Writer
from headstart.tasks.coref_documents import Chain, Chains, Columns, CorefDocument
from headstart.tasks.coref_reading import NONE
from headstart.tasks.coref_view import Resolved, html_page, terminal_view
from headstart.tasks.prediction_writers import one_line
from headstart.tasks.tag_writers import WIDTH

NO_EDGE = "-"
CLOSING, OPENING, ONE_WORD = range(3)

Pairs = Iterable[tuple[CorefDocument, Chains]]


class ChainColumns(Writer[CorefDocument, Chains]):
    """CoNLL-2012's columns. Those of a column file stay as they are, but for the last."""

    def lines(self, pairs: Pairs) -> str:
        return "".join(columns_of(document, answer.chains) for document, answer in pairs)


class ChainView(Writer[CorefDocument, Chains]):
    """Mentions in the colour of their chain, with its number."""

    def lines(self, pairs: Pairs) -> str:
        console = Console(file=StringIO(), force_terminal=True, color_system="256", width=WIDTH, soft_wrap=True)
        with console.capture() as captured:
            for document, answer in pairs:
                if document.text is None:
                    console.print(document.name, style="bold", markup=False, highlight=False)
                console.print(terminal_view(document, answer.chains), end="\n\n", highlight=False)
        return captured.get()


class ChainPage:
    """A page of documents with their chains marked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.resolved: list[Resolved] = []

    def add(self, pairs: Pairs) -> None:
        self.resolved += [(document, answer.chains) for document, answer in pairs]

    def save(self) -> None:
        write_text(self.path, html_page(self.resolved, "Coreference"))


def chains_as_json(document: CorefDocument, chains: Sequence[Chain]) -> dict[str, Any]:
    """A document and its chains as plain values, which the reader of JSON lines takes.

    mentions: for each chain, its mentions' texts; with a text, at their characters, else at their words.
    """
    found: dict[str, Any] = {"document": document.name, "part": document.part}
    if document.text is not None:
        found["text"] = document.text
    found["sentences"] = [list(document.words[first:end]) for first, end in document.sentences]
    found["chains"] = [[list(mention) for mention in chain] for chain in chains]
    found["mentions"] = [[mention_as_json(document, *mention) for mention in chain] for chain in chains]
    return found


def mention_as_json(document: CorefDocument, first: int, end: int) -> dict[str, Any]:
    if document.text is None or document.offsets is None:
        return {"text": " ".join(document.words[first:end]), "first_word": first, "end_word": end}
    start, stop = document.offsets[first][0], document.offsets[end - 1][1]
    return {"text": document.text[start:stop], "start": start, "end": stop}


# --- columns ----------------------------------------------------------------------------------------------------------


def columns_of(document: CorefDocument, chains: Sequence[Chain]) -> str:
    """Chains are numbered from 0 in their order. The gold chains of a column file keep the numbers they have there."""
    columns = document.columns
    if columns is None:
        return new_columns(document, edge_cells(len(document.words), chains, range(len(chains))))
    is_gold = document.chains is not None and tuple(chains) == document.chains
    return rewritten(columns, edge_cells(len(document.words), chains, columns.ids if is_gold else range(len(chains))))


def rewritten(columns: Columns, cells: Sequence[str]) -> str:
    """The lines of the file with other last cells. A cell with the same edges in another order is left as it is."""
    lines = list(columns.lines)
    for (number, start, end), cell in zip(columns.cells, cells, strict=True):
        line = lines[number]
        there = "" if line[start:end] in NONE else line[start:end]
        if sorted(there.split("|")) != sorted(cell.split("|")):
            lines[number] = line[:start] + (cell or columns.none) + line[end:]
    text = "".join(lines)
    return text if text.endswith("\n") else f"{text}\n"


def new_columns(document: CorefDocument, cells: Sequence[str]) -> str:
    """Document, part, number of the word in its sentence, word, edges; separated by tabs, as the scorer reads them."""
    name = one_line(document.name)
    part = (document.part.lstrip("0") or "0") if document.part.isdecimal() else document.part
    found = [f"#begin document ({name}); part {part.zfill(3)}\n"]
    for first, end in document.sentences:
        for word in range(first, end):
            row = [name, part, str(word - first), one_line(document.words[word]), cells[word] or NO_EDGE]
            found.append("\t".join(row) + "\n")
        found.append("\n")
    return "".join([*found, "#end document\n"])


def edge_cells(length: int, chains: Sequence[Chain], ids: Iterable[object]) -> list[str]:
    """The edges at each word: inner ends first, then beginnings, the longest first, then mentions of one word.

    The format closes the mention of a chain that was opened last: it cannot say that two mentions of one chain cross.
    """
    edges: list[list[tuple[int, int, str]]] = [[] for _ in range(length)]
    for id, chain in zip(ids, chains, strict=True):
        for first, end in chain:
            if end - first == 1:
                edges[first].append((ONE_WORD, 0, f"({id})"))
            else:
                edges[first].append((OPENING, -end, f"({id}"))
                edges[end - 1].append((CLOSING, -first, f"{id})"))
    return ["|".join(edge for *_, edge in sorted(cell)) for cell in edges]
