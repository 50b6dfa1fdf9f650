"""Documents and their coreference chains: for each entity, the mentions that refer to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headstart.tasks.tag_view import joined_offsets

Mention = tuple[int, int]
"""(first word, end), without end, counted over the whole document."""
Chain = tuple[Mention, ...]
Gender = Literal["masculine", "feminine"]
ONTONOTES_GENRE = re.compile(r"(bc|bn|mz|nw|pt|tc|wb)/")
GUM_GENRE = re.compile(r"GUM_([a-z]+)_")


@dataclass(frozen=True, slots=True)
class Chains:
    """The answer to a document. Mentions are sorted within a chain, chains by their first mention."""

    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class PronounExample:
    """A question of GAP: which of two names a pronoun refers to, or neither. Places are characters of the text."""

    pronoun: tuple[int, int]
    a: tuple[int, int]
    b: tuple[int, int]
    gender: Gender
    a_coref: bool
    b_coref: bool


@dataclass(frozen=True, slots=True)
class Columns:
    """How a column file has a document, for writing it back.

    lines: all of them, with their ends; cells: for each word its line, and where the last cell starts and ends in it.
    ids: what the file calls each of the document's chains; none: what it has where no mention begins or ends.
    """

    lines: tuple[str, ...]
    cells: tuple[tuple[int, int, int], ...]
    ids: tuple[str, ...]
    none: str


@dataclass(frozen=True, slots=True)
class CorefDocument:
    """The words of a document, the words (first, end) of each sentence, and the chains, sorted; None: not known.

    Of a plain text: the text, and the characters (start, end) of each word. speakers: one per word, where known.
    """

    name: str
    part: str
    words: tuple[str, ...]
    sentences: tuple[tuple[int, int], ...]
    chains: tuple[Chain, ...] | None
    genre: str | None = None
    speakers: tuple[str, ...] | None = None
    where: str = ""
    """Its file, and the line of its beginning, for messages."""
    text: str | None = None
    offsets: tuple[tuple[int, int], ...] | None = None
    pronoun: PronounExample | None = None
    columns: Columns | None = field(default=None, compare=False, repr=False)

    def text_and_offsets(self) -> tuple[str, Sequence[tuple[int, int]]]:
        """The text as it was written, or else the words joined, with a sentence per line; and where each word is."""
        if self.text is not None and self.offsets is not None:
            return self.text, self.offsets
        sentences = (" ".join(self.words[first:last]) for first, last in self.sentences)
        return "\n".join(sentences), joined_offsets(self.words)


def genre_of(name: str) -> str | None:
    """The genre that a document's name tells in OntoNotes (bn/cnn/00/cnn_0001) and in GUM (GUM_academic_art)."""
    found = ONTONOTES_GENRE.match(name) or GUM_GENRE.match(name)
    return found[1] if found else None


def sorted_chains(chains: Iterable[Iterable[Mention]]) -> tuple[Chain, ...]:
    return tuple(sorted(tuple(sorted(chain)) for chain in chains))


def without_singletons(chains: Iterable[Chain]) -> tuple[Chain, ...]:
    return tuple(chain for chain in chains if len(chain) > 1)


def without_repeats(chains: Iterable[Chain], among: Collection[Mention] | None = None) -> tuple[Chain, ...]:
    """Each mention only where it is first, and no chain that this empties. among: the only mentions to look at."""
    seen: set[Mention] = set()
    kept: list[Chain] = []
    for chain in chains:
        mentions: list[Mention] = []
        for mention in chain:
            if mention not in seen:
                mentions.append(mention)
            if among is None or mention in among:
                seen.add(mention)
        if mentions:
            kept.append(tuple(mentions))
    return tuple(kept)


def repeated_mentions(chains: Iterable[Chain]) -> list[Mention]:
    """The mentions that are in two chains, or twice in one."""
    counts = Counter(mention for chain in chains for mention in chain)
    return sorted(mention for mention, count in counts.items() if count > 1)
