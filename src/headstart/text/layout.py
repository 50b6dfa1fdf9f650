"""Whether each line of a .txt file is a document, or blank lines separate documents.

Both are common, and a wrong guess is costly: read the other way, a file of reviews is one document, of which nothing
can be held out. The lines decide: a file of 20 lines or more without a blank one between them has a document on each
line, unless it looks hard-wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from headstart.text.files import Source
from headstart.text.formats import is_plain, universal

SNIFFED_CHARACTERS = 4_000_000  # a later blank line is harmless: documents that are empty are skipped
FEWEST_LINES = 20
WIDEST_WRAPPED = 200
ENDS_A_SENTENCE = re.compile(r"[.!?…。！？।؟։][\"'’”»)\]」』）】]*$")


@dataclass(frozen=True, slots=True)
class Sniffed:
    """The first lines of a .txt file: how many, whether blank lines separate them, whether they look hard-wrapped."""

    lines: int
    more: bool
    """Whether the file goes on after them."""
    separated: bool
    wrapped: bool

    @property
    def is_long(self) -> bool:
        """Whether the file has many lines and none is blank, so that one of the two readings makes it one document."""
        return self.lines >= FEWEST_LINES and not self.separated


def decide(paths: Sequence[Path]) -> tuple[bool, str | None]:
    """(whether each line of the .txt files is a document, what to tell the user).

    One answer serves all files, because it is one setting of a run. Files of a few lines do not count, unless they
    are most of the files: then these are documents of a few lines each.
    """
    sniffed = {path: sniff(path.resolve(), *identity(path)) for path in paths if is_plain(path)}
    long = {path: found for path, found in sniffed.items() if found.is_long}
    if not long:
        return False, None
    path, found = next(iter(long.items()))
    fact = f"{path}: has {'more than ' if found.more else ''}{found.lines:,} lines and no blank one"
    if any(other.separated or other.wrapped for other in sniffed.values()) or 2 * len(long) < len(sniffed):
        looks = "looks hard-wrapped" if found.wrapped else "is read like the other files"
        return False, f"{fact}, but {looks}: it is one document. If each line is a document, give --one-per-line."
    return True, f"{fact}: each line is taken as a document. If the file is one document, give --no-one-per-line."


def identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=4096)  # a run asks several times: to count words, to learn pieces and to tokenise
def sniff(path: Path, size: int, modified: int) -> Sniffed:
    """Read the beginning of a file. size, modified: so that a changed file is read again."""
    lines: list[str] = []
    characters = 0
    with Source(path) as source:
        for chunk in source.chunks():
            lines += universal(chunk).removesuffix("\n").split("\n")
            characters += len(chunk)
            if characters >= SNIFFED_CHARACTERS:
                break
    filled = [line for line in lines if line.strip()]
    separated = any(not line.strip() for line in trimmed(lines))
    return Sniffed(len(filled), characters >= SNIFFED_CHARACTERS, separated, looks_wrapped(filled))


def trimmed(lines: list[str]) -> list[str]:
    """Without the blank lines at both ends."""
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while first < last and not lines[last - 1].strip():
        last -= 1
    return lines[first:last]


def looks_wrapped(lines: list[str]) -> bool:
    """Whether lines break at a column instead of where sentences end.

    Three signs together: most lines are nearly as long as the longest, few end with a sentence, and some continue in
    lower case (in scripts without case, this sign is left out).
    """
    if not lines:
        return False
    lengths = sorted(map(len, lines))
    width = lengths[int(0.95 * (len(lengths) - 1))]
    full = sum(length >= 0.8 * width for length in lengths)
    ended = sum(ENDS_A_SENTENCE.search(line.rstrip()) is not None for line in lines)
    starts = [line.lstrip()[0] for line in lines]
    lower, upper = sum(map(str.islower, starts)), sum(map(str.isupper, starts))
    continues = lower >= 0.2 * (lower + upper)
    return width <= WIDEST_WRAPPED and full > 0.5 * len(lines) and ended < 0.5 * len(lines) and continues
