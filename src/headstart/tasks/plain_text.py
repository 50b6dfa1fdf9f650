"""Plain text -> sentences of words, each with its place in the text, so that answers can point back at it."""

from __future__ import annotations

from typing import NamedTuple

from headstart.text.sentences import sentence_spans
from headstart.text.words import word_spans


class PlacedWord(NamedTuple):
    """A word and where it stands, in characters: text[start:end] == word."""

    word: str
    start: int
    end: int


def sentences_and_words(text: str, lines_are_sentences: bool = False) -> list[list[PlacedWord]]:
    """The sentences of a text, none without words. lines_are_sentences: each line is one, whatever stops are in it."""
    sentences = []
    for first, last in sentence_spans(text, lines_are_sentences):
        spans = [(first + start, first + end) for start, end in word_spans(text[first:last])]
        if spans:
            sentences.append([PlacedWord(text[start:end], start, end) for start, end in spans])
    return sentences
