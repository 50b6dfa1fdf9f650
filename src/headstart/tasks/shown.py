"""How an example and the answers to it are shown to people: short pieces of text, parts of which are marked."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_TEXT = 300
"""Characters of a text that is shown from its beginning."""
LONGEST_WORD = 20
"""How far a cut is moved, so as not to go through a word."""
LEAST_BESIDE = 30
"""Characters that are shown on each side of a marked part, however long that is."""
CUT = "…"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text. marked: it is what the reader should see first, such as an answer in its context."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class ShownText:
    """One text of an example. title: what it is, such as "question"."""

    title: str
    segments: list[Segment]


@dataclass(frozen=True, slots=True)
class AnswerText:
    """What a model answered. note: what else is known of it, such as its probability."""

    segments: list[Segment]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """An example, its gold answer, and the answers of several models to it."""

    texts: list[ShownText]
    gold: str
    answers: list[AnswerText]


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """The beginning of a text, with … where it is cut."""
    if len(text) <= most:
        return text
    return f"{text[: right_cut(text, most)].rstrip()}{CUT}"


def part_around(text: str, start: int, end: int, most: int) -> tuple[int, int]:
    """Where a part of the text begins and ends that holds text[start:end] and has about `most` characters."""
    beside = max(LEAST_BESIDE, (most - (end - start)) // 2)
    # What one side has too little of, the other side gets.
    first = max(0, min(start - beside, len(text) - most))
    last = min(len(text), max(end + beside, first + most))
    return min(start, left_cut(text, first)), max(end, right_cut(text, last))


def marked(text: str, start: int, end: int, part: tuple[int, int]) -> list[Segment]:
    """A part of the text, with text[start:end] marked, and … where the text goes on."""
    first, last = part
    before = f"{CUT if first > 0 else ''}{text[first:start]}"
    after = f"{text[end:last]}{CUT if last < len(text) else ''}"
    found = [Segment(before), Segment(text[start:end], marked=True), Segment(after)]
    return [segment for segment in found if segment.text]


def left_cut(text: str, place: int) -> int:
    """Where to begin, at or after a place: after the next space, if there is one near."""
    if place <= 0:
        return 0
    near = (at + 1 for at in range(place - 1, min(len(text), place + LONGEST_WORD)) if text[at].isspace())
    return next(near, place)


def right_cut(text: str, place: int) -> int:
    """Where to end, at or before a place: before the last space, if there is one near."""
    if place >= len(text):
        return len(text)
    near = (at for at in range(place, max(0, place - LONGEST_WORD), -1) if text[at].isspace())
    return next(near, place)
