"""Coreference chains to look at: coloured and numbered in the terminal, or marked in a page of HTML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from rich.text import Text

from headstart.tasks.coref_documents import Chain, CorefDocument
from headstart.tasks.tag_view import COLOURS, NO_BREAK_SPACE, counted, page_of, without_controls

LEGEND_CHARACTERS = 40
Resolved = tuple[CorefDocument, Sequence[Chain]]


class Edge(NamedTuple):
    """Where a mention of a chain, counted from 0, begins or ends.

    whole: False where only a part of the mention does, as it crosses another: parts are properly nested.
    """

    chain: int
    begins: bool
    whole: bool = True


def pieces(document: CorefDocument, chains: Sequence[Chain]) -> Iterator[str | Edge]:
    """The text cut at the edges of mentions; those that are open at any place are closed in the reverse order."""
    text, offsets = document.text_and_offsets()
    beginning: dict[int, list[tuple[int, int]]] = defaultdict(list)
    ending: set[int] = set()
    for number, chain in enumerate(chains):
        for first, end in chain:
            beginning[first].append((end, number))
            ending.add(end - 1)
    done = offsets[0][0] if offsets else 0
    stack: list[tuple[int, int]] = []
    for word in sorted(beginning.keys() | ending):
        start, end = offsets[word]
        if word in beginning:
            yield text[done:start]
            done = start
            begun = sorted(beginning[word], key=lambda one: (-one[0], one[1]))
            stack += begun
            yield from (Edge(number, True) for _, number in begun)
        if word in ending:
            yield text[done:end]
            done = end
            yield from closed(stack, word + 1)
    yield text[done : offsets[-1][1] if offsets else 0]


def closed(stack: list[tuple[int, int]], end: int) -> Iterator[Edge]:
    """Ends the mentions that end here. One above them that does not is ended as well, and begun again after them."""
    lowest = next(place for place, (last, _) in enumerate(stack) if last == end)
    above = stack[lowest:]
    del stack[lowest:]
    yield from (Edge(number, False, last == end) for last, number in reversed(above))
    crossing = [one for one in above if one[0] != end]
    stack += crossing
    yield from (Edge(number, True, False) for _, number in crossing)


def terminal_view(document: CorefDocument, chains: Sequence[Chain]) -> Text:
    """`[1 Alice] said [1 she] left`, coloured by chain. Where mentions cross, the end says which: `]1`."""
    view = Text()
    inside: list[int] = []
    cut = False
    for piece in pieces(document, chains):
        style = terminal_style(inside[-1]) if inside else ""
        if isinstance(piece, str):
            view.append("\n".join(map(without_controls, piece.split("\n"))), style=style)
            continue
        if piece.begins:
            inside.append(piece.chain)
            if piece.whole:
                view.append(f"[{piece.chain + 1} ", style=f"bold {terminal_style(piece.chain)}")
            cut = False
            continue
        inside.pop()
        if piece.whole:
            view.append(f"]{piece.chain + 1}" if cut else "]", style=f"bold {style}")
        cut = cut or not piece.whole
    return view


def terminal_style(chain: int) -> str:
    return f"black on color({COLOURS[chain % len(COLOURS)][1]})"


def html_page(resolved: Sequence[Resolved], title: str) -> str:
    """The documents with their mentions marked and a list of their chains, as one HTML file that needs nothing else."""
    chains = [chain for _, found in resolved for chain in found]
    summary = ", ".join(
        [
            counted(len(resolved), "document", "documents"),
            counted(len(chains), "chain", "chains"),
            counted(sum(map(len, chains)), "mention", "mentions"),
        ]
    )
    most = max((len(found) for _, found in resolved), default=0)
    rules = OWN_STYLE + "".join(hover_rule(number) for number in range(most))
    return page_of(title, summary, [], [section(document, found) for document, found in resolved], rules)


def section(document: CorefDocument, chains: Sequence[Chain]) -> str:
    text = "".join(
        escape(piece) if isinstance(piece, str) else mark(piece, len(chains[piece.chain]) == 1)
        for piece in pieces(document, chains)
    )
    heading = f"<h2>{escape(document.name)}</h2>\n" if document.name else ""
    return f'<section>\n{heading}{legend(document, chains)}<p dir="auto">{text}</p>\n</section>'


def mark(edge: Edge, alone: bool) -> str:
    if not edge.begins:
        return "</mark>"
    # The space is inside the label and does not break: a label never ends a line, and is not copied with the text.
    label = f"<b>{edge.chain + 1}{NO_BREAK_SPACE}</b>" if edge.whole else ""
    return f"<mark {attributes(edge.chain, alone)}>{label}"


def attributes(chain: int, alone: bool = False) -> str:
    """alone: the chain's only mention, which has no colour, as nothing else is marked like it."""
    return f'class="c{chain + 1}{" alone" if alone else ""}" style="--hue:{COLOURS[chain % len(COLOURS)][0]}"'


def legend(document: CorefDocument, chains: Sequence[Chain]) -> str:
    """Each chain with its first mention and its length; singletons are only counted."""
    text, offsets = document.text_and_offsets()
    items: list[str] = []
    for number, chain in enumerate(chains):
        if len(chain) > 1:
            first, end = chain[0]
            words = " ".join(text[offsets[first][0] : offsets[end - 1][1]].split())
            shown = words if len(words) <= LEGEND_CHARACTERS else f"{words[:LEGEND_CHARACTERS]}…"
            items.append(
                f"<li><mark {attributes(number)}><b>{number + 1}{NO_BREAK_SPACE}</b>{escape(shown)}</mark> "
                f"{len(chain):,}</li>"
            )
    if alone := len(chains) - len(items):
        items.append(f"<li>{counted(alone, 'entity is', 'entities are')} mentioned once</li>")
    return '<ul aria-label="Chains">\n' + "\n".join(items) + "\n</ul>\n" if items else ""


def hover_rule(chain: int) -> str:
    """The mouse over a mention, or over the chain's entry in the list, outlines every mention of the chain."""
    return f"section:has(.c{chain + 1}:hover) .c{chain + 1} {{ outline: 2px solid hsl(var(--hue) var(--label)); }}\n"


OWN_STYLE = """
h2 { font-size: 1.1rem; margin: 2rem 0 0; overflow-wrap: anywhere; }
mark mark { padding-block: 0; }
mark.alone { background: none; border-style: dotted; }
"""
