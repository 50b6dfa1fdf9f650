"""Sentence splitting, by rules that hold in most languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Part of every cache key. Raise it whenever the rules change the sentences of any text.
RULE = 1

CLOSING = "'\"’”»)\\]}」』）】》〉*"
STOPS = ".!?…"
# Unambiguous stops, which need no white space after them: Chinese, Japanese, Indic, Arabic, Armenian, ...
SURE_STOPS = "。！？｡।॥؟۔։።။។"
STOP = re.compile(
    rf"[{STOPS}{SURE_STOPS}]"
    rf"(?:(?<![{SURE_STOPS}])[{STOPS}]*[{CLOSING}]*(?:\s+(?:''|[”)\]])(?=\s))*(?P<space>\s+)"
    rf"|(?<=[{SURE_STOPS}])[{STOPS}{SURE_STOPS}]*[{CLOSING}]*(?P<gap>\s*))"
)
BLANK_LINE = re.compile(r"\n\s*\n")
LINE = re.compile(r"\n")
LONGEST_ABBREVIATION = 12
LETTERS_WITH_POINTS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")

COMMON = """
mr mrs ms mx dr prof st rev fr hon gen col maj capt cmdr lt sgt sen rep gov pres supt messrs mme mlle jr sr esq
vs etc cf al ibid viz approx dept univ assn bros inc ltd co corp mt ft ave blvd rd
sra srta ud uds bzw ca usw evtl ggf hr
"""
ABBREVIATIONS = frozenset(COMMON.split())
# Abbreviations only before a number ("No. 5", "p. 12", "Jan. 3"); otherwise ordinary words.
BEFORE_NUMBERS = """
no nos nr vol vols fig figs eq eqs art ch chap sec sect pp pg par tab app ed
jan feb mar apr jun jul aug sep sept oct nov dec
"""
NUMBERED = frozenset(BEFORE_NUMBERS.split())


def sentence_spans(text: str, lines_are_sentences: bool) -> list[tuple[int, int]]:
    """(start, end) of each sentence in characters, without surrounding white space; none is empty.

    A blank line always ends a sentence. If `lines_are_sentences`, each line is one sentence.
    """
    if lines_are_sentences:
        trimmed = (trim(text, first, last) for first, last in paragraphs(text, LINE))
        return [(first, last) for first, last in trimmed if first < last]
    return [span for first, last in paragraphs(text, BLANK_LINE) for span in paragraph_spans(text, first, last)]


def paragraphs(text: str, separator: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    first = 0
    for match in separator.finditer(text):
        yield first, match.start()
        first = match.end()
    yield first, len(text)


def trim(text: str, first: int, last: int) -> tuple[int, int]:
    while first < last and text[first].isspace():
        first += 1
    while first < last and text[last - 1].isspace():
        last -= 1
    return first, last


def paragraph_spans(text: str, first: int, last: int) -> list[tuple[int, int]]:
    first, last = trim(text, first, last)
    spans: list[tuple[int, int]] = []
    for match in STOP.finditer(text, first, last):
        start, after = match.span()
        if after == last:
            break
        ends = match.start("space")
        if ends < 0:
            ends = match.start("gap")
        elif not ends_sentence(text, first, start, ends, text[after]):
            continue
        spans.append((first, ends))
        first = after
    if first < last:
        spans.append((first, last))
    return spans


def ends_sentence(text: str, first: int, stop: int, ends: int, following: str) -> bool:
    """Whether the stop at `stop`, followed by white space from `ends`, ends the sentence that starts at `first`."""
    if following.islower() or following in STOPS:
        return False
    if ends > stop + 1 or text[stop] != ".":
        return True
    return not is_abbreviation(text[max(first, stop - LONGEST_ABBREVIATION) : stop], stop - first, following)


def is_abbreviation(before: str, length: int, following: str) -> bool:
    """Whether the full stop after `before` is part of its last word. length: characters of the sentence so far."""
    if not before or before[-1].isspace():
        return False
    word = before.split()[-1].lstrip("(['\"‘“«-")
    lowered = word.lower()
    if lowered in ABBREVIATIONS or (lowered in NUMBERED and following.isdigit()):
        return True
    if word.isdigit():  # the number of a list: "1. First"
        return len(word) == length
    return LETTERS_WITH_POINTS.fullmatch(word) is not None
