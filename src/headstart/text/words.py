"""Unicode words and their spans in the text, by one rule for all languages.

- Letters, marks and digits run together; an apostrophe between letters does not break a word (don't), nor does a
  point or comma between digits (3.14, 1,000). A hyphen does (well-known is three words).
- Letters each followed by a point are one word (U.S., e.g.), and so is a clitic that stands alone ('s, as in
  text that was tokenised before).
- A CJK ideograph is a word of its own: there are no spaces to go by.
- URLs, e-mail addresses, @handles and tags (<unk>) are one word.
- Any other symbol is a word together with its modifiers (emoji sequences); a repeated symbol is one word (...).
- White space, control and format characters are never part of a word, except joiners inside one.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

# Part of a word tokenizer's fingerprint. Raise it whenever the rule changes the words of any text.
RULE = 1

IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
LETTER = rf"[^\W_{IDEOGRAPHS}]"
JOINERS = "\u00ad\u200c\u200d"  # soft hyphen, and the joiners of Persian and Indic scripts and of emoji
EMOJI_MODIFIERS = "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # skin tones; the tags of regional flags
FLAG_LETTER = "[\U0001f1e6-\U0001f1ff]"
LONGEST_KEPT = 24


def split_words(text: str) -> list[str]:
    # Words never span white space. Most runs between white space are one word; most of the others are in the cache.
    words: list[str] = []
    for run in text.split():
        if run.isascii() and run.isalpha():
            words.append(run)
        else:
            words += words_of(run) if len(run) <= LONGEST_KEPT else split_run(run)
    return words


def word_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of each word, in characters."""
    return [match.span() for match in pattern_for(text).finditer(text)]


def split_run(run: str) -> tuple[str, ...]:
    return tuple([match[0] for match in pattern_for(run).finditer(run)])


words_of = lru_cache(maxsize=1 << 16)(split_run)


def pattern_for(text: str) -> re.Pattern[str]:
    """The alternatives for addresses slow down every word, so they are used only if the text contains an @."""
    return word_pattern(addresses="@" in text)


@cache
def word_pattern(addresses: bool) -> re.Pattern[str]:
    """The rule as alternatives, frequent ones first. Where possible each starts with a character class, which the
    regular-expression engine rejects after one character."""
    accents = character_ranges({"Mn", "Mc", "Me"})
    marks = accents + JOINERS
    symbol = rf"[^\w\s{character_ranges({'Cc', 'Cf'})}]"
    modifiers = rf"[{accents}{EMOJI_MODIFIERS}]*"
    alternatives = [
        r"[A-Za-z]+(?=[\s,])",  # nearly every English word
        r"[hHwW](?:[tT][tT][pP][sS]?://|[wW][wW]\.)[^\s<>\"]*[^\s<>\"'’”.,!?;:)\]}]",
        r"[A-Za-z]\.(?:[A-Za-z]\.)+(?:[A-Za-z](?![^\W_]))?",
        rf"{LETTER}+(?:[{marks}]+{LETTER}*|['’]{LETTER}+|(?<=\d)[.,](?=\d){LETTER}+)*",
        rf"[{IDEOGRAPHS}][{marks}]*",
        r"[,.?!](?=\s)",
        r"</?[^\W\d_][^\s<>]{0,30}>",
        r"['’](?<!\S.)(?:[sdmtSDMT]|re|ve|ll|RE|VE|LL)(?!\w)",
        rf"{FLAG_LETTER}{FLAG_LETTER}",
        rf"({symbol}|_)(?:\1+|{modifiers}(?:\u200d{symbol}{modifiers})*)",
    ]
    if addresses:
        alternatives[:0] = [r"[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+", r"@\w+", r"@[-.,]@"]
    return re.compile("|".join(alternatives))


def character_ranges(categories: set[str]) -> str:
    """The characters of some Unicode categories, as the inside of a character class."""
    inside = [unicodedata.category(chr(code)) in categories for code in range(0x20000)]
    edges = [code for code in range(1, len(inside)) if inside[code] != inside[code - 1]]
    edges = ([0] if inside[0] else []) + edges
    return "".join(f"\\U{first:08x}-\\U{last - 1:08x}" for first, last in zip(edges[::2], edges[1::2], strict=True))
