"""Tagged text to look at: coloured in the terminal, or marked in a page of HTML."""

from __future__ import annotations

import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from rich.text import Text

from headstart.tasks.spans import Span
from headstart.text.formats import LONE_SURROGATE

Offsets = Sequence[tuple[int, int]]
"""Where each word begins and ends in the text, in characters."""

# Each colour's hue in degrees for the page, and its number among a terminal's 256: pale, behind black letters, so that
# it can be read on a light and on a dark screen. Neighbours in the list are far apart.
COLOURS = [(212, 117), (145, 120), (45, 222), (300, 219), (5, 210), (185, 123)]
COLOURS += [(90, 149), (265, 183), (25, 216), (235, 153), (335, 211), (165, 115)]
NO_BREAK_SPACE = "\u00a0"
USUAL = {"PER": 0, "PERSON": 0, "LOC": 1, "ORG": 2, "MISC": 3, "GPE": 5}


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """Words and the entities among them, in order. With the text and the words' places, it is shown as it was written.

    Parts of speech are entities of one word each.
    """

    words: Sequence[str]
    spans: Sequence[Span]
    text: str | None = None
    offsets: Offsets | None = None

    def pieces(self) -> Iterator[tuple[str, str | None]]:
        """The sentence cut into entities, each with its type, and what stands between them, with None."""
        text, offsets = self.text, self.offsets
        if text is None or offsets is None:
            text, offsets = " ".join(self.words), joined_offsets(self.words)
        done = offsets[0][0] if offsets else 0
        for first, last, type in self.spans:
            start, end = offsets[first][0], offsets[last - 1][1]
            yield text[done:start], None
            yield text[start:end], type
            done = end
        yield text[done : offsets[-1][1] if offsets else 0], None


def joined_offsets(words: Sequence[str]) -> Offsets:
    """Where words stand once they are joined by spaces."""
    ends = list(accumulate(len(word) + 1 for word in words))
    return [(end - len(word) - 1, end - 1) for word, end in zip(words, ends, strict=True)]


def colours_of(types: Iterable[str]) -> dict[str, int]:
    """A number in COLOURS for each type: always the same for the usual ones, for others by their name.

    Two types have one colour only where there are more types than colours.
    """
    chosen: dict[str, int] = {}
    for type in sorted(set(types), key=lambda type: (type.upper() not in USUAL, type)):
        number = USUAL.get(type.upper(), zlib.crc32(type.encode("utf-8", "replace")) % len(COLOURS))
        while number in chosen.values() and len(chosen) < len(COLOURS):
            number = (number + 1) % len(COLOURS)
        chosen[type] = number
    return chosen


def terminal_view(sentence: MarkedSentence) -> Text:
    """[Rome LOC] for each entity, coloured by type; the brackets stay where a terminal has no colours."""
    colours = colours_of(span.type for span in sentence.spans)
    view = Text()
    for piece, type in sentence.pieces():
        if type is None:
            view.append(without_controls(piece))
        else:
            style = f"black on color({COLOURS[colours[type]][1]})"
            view.append(f"[{without_controls(piece)}", style=f"bold {style}")
            view.append(f" {without_controls(type)}]" if type else "]", style=style)
    return view


def without_controls(text: str) -> str:
    """Control characters could move the cursor or ring the bell; they become spaces."""
    return "".join(" " if unicodedata.category(mark) in ("Cc", "Cs") else mark for mark in text)


def html_page(sentences: Sequence[MarkedSentence], title: str) -> str:
    """The sentences with their entities marked, as one HTML file that needs nothing else."""
    counts = Counter(span.type for sentence in sentences for span in sentence.spans)
    colours = colours_of(counts)
    paragraphs = [f'<p dir="auto">{marked(sentence, colours)}</p>' for sentence in sentences]
    key = [f"<li>{mark_of('', type, colours)} {count:,}</li>" for type, count in sorted(counts.items())]
    summary = f"{counted(len(sentences), 'sentence', 'sentences')}, {counted(counts.total(), 'entity', 'entities')}"
    return page_of(title, summary, key, paragraphs)


def page_of(title: str, summary: str, key: Sequence[str], body: Sequence[str], style: str = "") -> str:
    """A page with its header. key: list items that explain the colours; style: rules besides STYLE."""
    listed = "\n".join(key)
    page = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="color-scheme" content="light dark">\n<title>{escape(title)}</title>',
        f"<style>{STYLE}{style}</style>\n</head>\n<body>",
        f'<header>\n<h1>{escape(title)}</h1>\n<p class="soft">{summary}</p>',
        f'<ul aria-label="Types">\n{listed}\n</ul>' if key else "",
        "</header>\n<main>",
        *body,
        "</main>\n</body>\n</html>\n",
    ]
    return LONE_SURROGATE.sub("\ufffd", "\n".join(page))


def marked(sentence: MarkedSentence, colours: dict[str, int]) -> str:
    pieces = sentence.pieces()
    return "".join(escape(piece) if type is None else mark_of(piece, type, colours) for piece, type in pieces)


def mark_of(text: str, type: str, colours: dict[str, int]) -> str:
    # The space is inside the label and does not break: a label never begins a line, and is not copied with the text.
    label = f"<b>{NO_BREAK_SPACE if text else ''}{escape(type)}</b>" if type else ""
    return f'<mark style="--hue:{COLOURS[colours[type]][0]}">{escape(text)}{label}</mark>'


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


# A mark's colours are made of its hue, so that light and dark need one rule each.
STYLE = """
:root { --ink: #1d2329; --soft: #5b6670; --line: #d9dee3; --page: #ffffff;
  --mark: 82% 90%; --edge: 45% 70%; --label: 75% 24%; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7ebee; --soft: #a3adb6; --line: #3a434b; --page: #15191d;
    --mark: 45% 21%; --edge: 35% 40%; --label: 75% 82%; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 50rem; background: var(--page); color: var(--ink);
  font: 1.05rem/1.9 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.25rem; }
header .soft { color: var(--soft); font-size: .9rem; margin: .25rem 0; }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .5rem 0 1rem;
  color: var(--soft); font-size: .9rem; font-variant-numeric: tabular-nums; }
main p { margin: .5rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
mark { background: hsl(var(--hue) var(--mark)); color: inherit; border: 1px solid hsl(var(--hue) var(--edge));
  border-radius: .3rem; padding: .1rem .3rem; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
mark b { color: hsl(var(--hue) var(--label)); font-size: .7em; letter-spacing: .03em; user-select: none; }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  mark { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  p, li { break-inside: avoid; }
}
"""
