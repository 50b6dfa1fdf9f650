"""Documents with coreference chains: CoNLL-2012's columns, JSON lines, GAP's table, or a folder of such files.

A column file has a word per line: the document's name, its part, the number of the word, the word, any others, and last
the edges of mentions: `(3` begins one of chain 3, `3)` ends it, `(3)` is one of one word, `|` stands between several.
Where there is none, the cell is empty, `-`, `_` or `*`. A blank line ends a sentence. Columns are separated by tabs or
by spaces; their number may differ between sentences, as OntoNotes has one for each predicate. Chains are those of one
part: a document that was cut into parts is several documents here, as for the reference scorer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.errors import DataError
from headstart.tasks.coref_documents import (
    Chain,
    Columns,
    CorefDocument,
    Mention,
    genre_of,
    repeated_mentions,
)
from headstart.tasks.coref_jsonl import JSON_LINES, documents_in_json
from headstart.tasks.gap import TABLES, gap_documents
from headstart.text.files import Source

BEGIN = re.compile(r"#\s*begin document\s+(?P<name>.*?)\s*(?:;\s*part\s+(?P<part>\S+)\s*)?$")
END = re.compile(r"#\s*end document")
EDGE = re.compile(r"\((?P<one>\d+)\)|\((?P<first>\d+)|(?P<last>\d+)\)")
NONE = ("", "-", "_", "*")
WORD, SPEAKER = 3, 9
FEWEST, WITH_SPEAKER = 5, 12  # CoNLL-2012 has eleven columns before those of the predicates and of the chains
# The official release has the same documents also as .auto_conll, with the same chains.
COLUMNS = (".conll", "gold_conll", ".conll.gz", "gold_conll.gz")
SHOWN_REPEATS = 3


@dataclass(frozen=True, slots=True)
class CorefFile:
    """The documents of a file or folder. repeated: where mentions are that are in two chains, or twice in one."""

    documents: list[CorefDocument]
    repeated: list[str]

    def notices(self, path: Path) -> list[str]:
        if not self.repeated:
            return []
        count = len(self.repeated)
        said = "1 mention is" if count == 1 else f"{count:,} mentions are"
        shown = "; ".join(self.repeated[:SHOWN_REPEATS]) + ("; ..." if count > SHOWN_REPEATS else "")
        return [
            f"{path}: {said} in two chains, or twice in one: {shown}. The scores count them as the reference scorer "
            f"does; training takes each in the first of its chains."
        ]


def read_documents(path: str | Path, labelled: bool = True) -> CorefFile:
    """The documents of a file, or of all files of a folder, sorted by name.

    labelled: read their chains, which may otherwise be missing.
    """
    path = Path(path).expanduser()
    documents = [document for file in files_of(path) for document in documents_of(file, labelled)]
    if not documents:
        raise DataError(f"{path}: holds no document. Give a file with CoNLL-2012's columns, or JSON lines.")
    repeated = [
        f"'{' '.join(document.words[first:end])[:40]}' in {document.name}, words {first} to {end}"
        for document in documents
        for first, end in repeated_mentions(document.chains or ())
    ]
    return CorefFile(documents, repeated)


def files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    known = COLUMNS + JSON_LINES
    found = sorted(file for file in path.rglob("*") if file.is_file() and file.name.lower().endswith(known))
    if not found:
        raise DataError(f"{path}: this folder holds no file of documents; known are {', '.join(known)}.")
    return found


def documents_of(path: Path, labelled: bool = True) -> Iterator[CorefDocument]:
    """By its suffix, a file is JSON lines, GAP's table, or else columns."""
    name = path.name.lower()
    read: Callable[[Source, bool], Iterator[CorefDocument]] = documents_in_columns
    if name.endswith(JSON_LINES):
        read = documents_in_json
    elif name.endswith(TABLES):
        read = gap_documents
    with Source(path) as source:
        yield from read(source, labelled)


def documents_in_columns(source: Source, labelled: bool = True) -> Iterator[CorefDocument]:
    for first, lines in blocks_of(source):
        yield Block(source.path, first, lines).document(labelled)


def blocks_of(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The lines of each document up to its end, with the number of the first. The last has all that follow."""
    held: tuple[int, list[str]] | None = None
    first, lines = 1, list[str]()
    for line in source.lines():
        lines.append(line)
        if line.startswith("#") and END.match(line):
            if held is not None:
                yield held
            held, first, lines = (first, lines), source.line + 1, []
    if any(line.strip() for line in lines):
        if held is not None:
            yield held
        yield first, lines
    elif held is not None:
        held[1].extend(lines)
        yield held


class Block:
    """The lines of one document of a column file. first: the number of the first."""

    def __init__(self, path: Path, first: int, lines: list[str]) -> None:
        self.path, self.first, self.lines = path, first, lines

    def where(self, number: int) -> str:
        return f"{self.path}:{self.first + number}"

    def document(self, labelled: bool) -> CorefDocument:
        begin, name, part = self.header()
        words: list[str] = []
        speakers: list[str] = []
        sentences: list[tuple[int, int]] = []
        places: list[tuple[int, int, int]] = []
        for rows in self.sentences(begin):
            sentences.append((len(words), len(words) + len(rows)))
            for number, cells in rows:
                words.append(cells[WORD])
                speakers.append(cells[SPEAKER] if len(cells) >= WITH_SPEAKER else "-")
                places.append(self.place(number, cells[-1]))
        if not words:
            raise DataError(f"{self.where(begin)}: this document holds no word. Fill it in, or remove it.")
        edges = [self.lines[number][start:end] for number, start, end in places]
        ids, chains = self.chains(edges, [number for number, *_ in places]) if labelled else ((), None)
        none = next((cell for cell in edges if cell in NONE), "-")
        return CorefDocument(
            name,
            part,
            tuple(words),
            tuple(sentences),
            chains,
            genre_of(name),
            None if all(speaker in NONE for speaker in speakers) else tuple(speakers),
            self.where(begin),
            columns=Columns(tuple(self.lines), tuple(places), ids, none),
        )

    def header(self) -> tuple[int, str, str]:
        """(the line that begins the document, its name, its part)."""
        comments = [(number, line) for number, line in enumerate(self.lines) if line.startswith("#")]
        begins = [(number, found) for number, line in comments if (found := BEGIN.match(line))]
        filled = [number for number, line in enumerate(self.lines) if line.strip()]
        outside = [number for number in filled if not self.lines[number].startswith("#")] or filled
        if not begins or outside[0] < begins[0][0]:
            raise DataError(
                f"{self.where(outside[0])}: is not in a document: {self.lines[outside[0]].strip()[:40]!r}. Each begins "
                f"with '#begin document (NAME); part 000' and ends with '#end document'."
            )
        number, found = begins[0]
        if len(begins) > 1 or not any(END.match(line) for _, line in comments):
            before = f"before line {self.first + begins[1][0]} begins another" if len(begins) > 1 else "in this file"
            raise DataError(
                f"{self.where(number)}: this document is not ended {before}. Put '#end document' after its last line, "
                f"or check whether the file was cut short."
            )
        name = found["name"]
        return number, name[1:-1] if name[:1] + name[-1:] == "()" else name, found["part"] or "0"

    def sentences(self, begin: int) -> Iterator[list[tuple[int, list[str]]]]:
        """The words of each sentence: the line's number, and its cells."""
        rows: list[tuple[int, list[str]]] = []
        for number, line in enumerate(self.lines[begin:], begin):
            if line.strip() and not line.startswith("#"):
                rows.append((number, self.checked_cells(number, rows)))
            elif rows and not line.startswith("#"):
                yield rows
                rows = []
        if rows:
            yield rows

    def checked_cells(self, number: int, rows: Sequence[tuple[int, list[str]]]) -> list[str]:
        line = self.lines[number].rstrip("\r\n")
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) < FEWEST:
            raise DataError(
                f"{self.where(number)}: has {len(cells)} columns: {line.strip()[:40]!r}. Each word needs at least "
                f"{FEWEST}: document, part, number, word, and last the edges of mentions."
            )
        if rows and len(cells) != len(rows[0][1]):
            raise DataError(
                f"{self.where(number)}: has {len(cells)} columns, but line {self.first + rows[0][0]} of the same "
                f"sentence has {len(rows[0][1])}. A sentence's words need the same columns, and a blank line ends it."
            )
        if not cells[WORD]:
            raise DataError(f"{self.where(number)}: column {WORD + 1}, the word, is empty. Fill it in.")
        if cells[-1] not in NONE and not all(EDGE.fullmatch(edge) for edge in cells[-1].split("|")):
            raise DataError(
                f"{self.where(number)}: the last column is {cells[-1]!r:.40}, but the edges of mentions are wanted, "
                f"such as (3, 3), (3) or (3|(4), or - where there is none."
            )
        return cells

    def place(self, number: int, cell: str) -> tuple[int, int, int]:
        line = self.lines[number].rstrip("\r\n")
        end = len(line if "\t" in line else line.rstrip())
        return number, end - len(cell), end

    def chains(self, edges: Sequence[str], numbers: Sequence[int]) -> tuple[tuple[str, ...], tuple[Chain, ...]]:
        """The names of the chains, and their mentions; both in the order of the chains' first mentions."""
        found: dict[str, list[Mention]] = {}
        begun: dict[str, list[int]] = {}
        for word, cell in enumerate(edges):
            for edge in EDGE.finditer(cell):
                if edge["first"]:
                    begun.setdefault(edge["first"], []).append(word)
                elif edge["one"]:
                    found.setdefault(edge["one"], []).append((word, word + 1))
                elif begun.get(edge["last"]):
                    found.setdefault(edge["last"], []).append((begun[edge["last"]].pop(), word + 1))
                else:
                    raise DataError(
                        f"{self.where(numbers[word])}: '{edge[0]}' ends a mention of chain {edge['last']}, but none is "
                        f"open. Begin it with '({edge['last']}', or remove this edge."
                    )
        for id, words in begun.items():
            if words:
                raise DataError(
                    f"{self.where(numbers[words[0]])}: '({id}' begins a mention that is never ended. End it with "
                    f"'{id})' in the same document."
                )
        ordered = sorted((tuple(sorted(mentions)), id) for id, mentions in found.items())
        return tuple([id for _, id in ordered]), tuple([chain for chain, _ in ordered])
