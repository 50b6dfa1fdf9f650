"""A plain text as a document: its words and sentences, at exact character offsets."""

from __future__ import annotations

import re

from headstart.tasks.coref_documents import CorefDocument, genre_of
from headstart.tasks.tag_inputs import sentence_of_text

# Corpora of coreference have these as words of their own: in "he's", the mention is "he".
CLITIC = re.compile(r"(?<=\w)['’](?:s|re|ve|ll|d|m)$", re.IGNORECASE)


def document_of_text(text: str, name: str, where: str = "") -> CorefDocument:
    found = sentence_of_text(text, where)
    offsets: list[tuple[int, int]] = []
    sentences: list[tuple[int, int]] = []
    for first, last in found.sentence_bounds:
        before = len(offsets)
        for start, end in (found.offsets or ())[first:last]:
            offsets += without_clitic(text, start, end)
        if len(offsets) > before:
            sentences.append((before, len(offsets)))
    words = tuple([text[start:end] for start, end in offsets])
    return CorefDocument(
        name, "0", words, tuple(sentences), None, genre_of(name), None, where, text, tuple(offsets)
    )  # fmt: skip


def without_clitic(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A word, or a word and the clitic at its end."""
    clitic = CLITIC.search(text[start:end])
    return [(start, start + clitic.start()), (start + clitic.start(), end)] if clitic else [(start, end)]
