"""The nearest neighbours of a word: of word vectors in the vocabulary, of ELMo and BERT among occurrences in a text."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from headstart.config import Table
from headstart.errors import ConfigError, DataError
from headstart.inspection.abilities import one_that_can
from headstart.inspection.occurrence_search import OccurrenceIndex
from headstart.inspection.occurrence_text import MarkedWord, marked_word, vector_of
from headstart.inspection.occurrences import WORDS, occurrence_index
from headstart.pretrained import Layers, Pretrained
from headstart.progress import Notice, Progress
from headstart.report.html_table import html_table
from headstart.text.tokenizer import WordTokenizer

FloatT = TypeVar("FloatT", np.float32, np.float64)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A word near the query, and its cosine."""

    word: str
    cosine: float

    def as_table(self) -> Table:
        return {"word": self.word, "cosine": self.cosine}


@dataclass(frozen=True, slots=True)
class WordNeighbours:
    """The nearest word types of a word. None where the vocabulary does not have it."""

    encoder: str
    word: str
    neighbours: tuple[Neighbour, ...] | None

    def as_table(self) -> Table:
        found = None if self.neighbours is None else [one.as_table() for one in self.neighbours]
        return {"encoder": self.encoder, "word": self.word, "neighbours": found}

    def _repr_html_(self) -> str:
        rows = [(f"{one.cosine:.3f}", one.word) for one in self.neighbours or ()]
        return html_table(["cosine", f"nearest to {self.word} in {self.encoder}"], rows)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A word in a sentence of a text, sentence[start:end], and its cosine to the query."""

    sentence: str
    start: int
    end: int
    cosine: float

    @property
    def word(self) -> str:
        return self.sentence[self.start : self.end]

    def as_table(self) -> Table:
        place = {"sentence": self.sentence, "start": self.start, "end": self.end}
        return {"word": self.word, "cosine": self.cosine, **place}


@dataclass(frozen=True, slots=True)
class NearestOccurrences:
    """searched: occurrences in the index. static: what word vectors give for the word, whatever its sentence."""

    encoder: str
    layer: int
    query: MarkedWord
    searched: int
    occurrences: tuple[Occurrence, ...]
    static: WordNeighbours | None

    def as_table(self) -> Table:
        return {
            "encoder": self.encoder,
            "layer": self.layer,
            "query": str(self.query),
            "searched": self.searched,
            "occurrences": [one.as_table() for one in self.occurrences],
            "static": None if self.static is None else self.static.as_table(),
        }

    def _repr_html_(self) -> str:
        rows = [(f"{one.cosine:.3f}", one.word, in_bold(one.sentence, one.start, one.end)) for one in self.occurrences]
        found = html_table(["cosine", "word", f"nearest to {self.query} in {self.encoder}"], rows)
        return found if self.static is None else found + self.static._repr_html_()


def in_bold(sentence: str, start: int, end: int) -> Markup:
    return Markup("{}<b>{}</b>{}").format(sentence[:start], sentence[start:end], sentence[end:])


def neighbours(
    pretrained: Pretrained,
    query: str,
    among: Sequence[str | Path] = (),
    *,
    static: Pretrained | None = None,
    most: int = 8,
    layer: Layers = "top",
    words: int = WORDS,
    index: str | Path | None = None,
    field: str | None = None,
    cache: Path | None = None,
) -> Generator[Progress | Notice, None, WordNeighbours | NearestOccurrences]:
    """The nearest word types of a word or, for ELMo and BERT, the nearest occurrences of "They staged a [play]".

    among, words, index, field: the text that is searched and its index; see `occurrence_index`. static: word vectors to
    show beside the occurrences.
    """
    if most < 1:
        raise ConfigError(f"most is a count of one or more; got {most}.")
    marked = marked_word(query)
    if not pretrained.encoder.contextual:
        check_no_context(pretrained, query, marked, has_text=bool(among) or index is not None)
        return WordNeighbours(pretrained.name, query, tuple(word_neighbours(pretrained, query, most)))
    if marked is None or not (among or index):
        raise needs_context(pretrained, query, marked)
    # What cannot be answered is said before an index is built.
    vector_of(pretrained, marked, layer)
    beside = None if static is None else static_neighbours(static, marked.word, most)
    opened = yield from occurrence_index(
        pretrained, among, layer=layer, words=words, folder=index, field=field, cache=cache
    )
    return NearestOccurrences(
        encoder=pretrained.name or pretrained.kind,
        layer=opened.layer,
        query=marked,
        searched=len(opened),
        occurrences=tuple(nearest_occurrences(pretrained, opened, marked, most)),
        static=beside,
    )


def check_no_context(pretrained: Pretrained, query: str, marked: MarkedWord | None, *, has_text: bool) -> None:
    """Word vectors know no sentences: being given one is a mistake."""
    if marked is not None or has_text:
        raise ConfigError(
            f"{pretrained.name or 'This encoder'}: gives '{marked.word if marked else query}' one vector, whatever its "
            f"sentence, so ask for the word alone; it cannot tell occurrences apart. {one_that_can('contexts')}"
        )


def needs_context(pretrained: Pretrained, query: str, marked: MarkedWord | None) -> ConfigError:
    what = "Give" if marked else f"Mark '{query}' in one, as in 'They staged a [play] in town', and give"
    return ConfigError(
        f"{pretrained.name or 'This encoder'}: a word's vector in {pretrained.encoder.title} depends on its sentence. "
        f"{what} --among TEXT to search. It cannot find the neighbours of a word alone; {one_that_can('words')}"
    )


def nearest_occurrences(
    pretrained: Pretrained, index: OccurrenceIndex, marked: MarkedWord, most: int = 8
) -> list[Occurrence]:
    """The occurrences nearest to a marked word, without those in the same sentence; a repeated sentence counts once."""
    found: dict[tuple[str, int, int], Occurrence] = {}
    for number, cosine in index.ranked(vector_of(pretrained, marked, index.layer)):
        place = index.place(number)
        if place[0] != marked.sentence:
            found.setdefault(place, Occurrence(*place, cosine))
        if len(found) == most:
            break
    return list(found.values())


def static_neighbours(static: Pretrained, word: str, most: int) -> WordNeighbours:
    """Those of word vectors, or None for a word that they lack."""
    known = row_of(static, word) is not None
    return WordNeighbours(static.name, word, tuple(word_neighbours(static, word, most)) if known else None)


def word_neighbours(pretrained: Pretrained, word: str, most: int = 8) -> list[Neighbour]:
    """The words of the vocabulary with the largest cosines to `word`."""
    encoder = pretrained.encoder
    if encoder.contextual:
        raise ConfigError(
            f"{pretrained.name or 'This encoder'}: {encoder.title} has no vector for a word alone, only for one in a "
            f"sentence, so it cannot find the neighbours of a word alone. {one_that_can('words')}"
        )
    vectors = encoder.word_vectors().cpu().numpy()
    words = vocabulary_of(pretrained).vocabulary.words
    row = row_of(pretrained, word)
    if row is None:
        raise DataError(f"'{word}' is not in the vocabulary of {len(words):,} words; the text has it too rarely.")
    cosines = unit(vectors) @ unit(vectors[row])
    cosines[[row, 0, 1, 2]] = -np.inf  # the word itself and the special tokens
    return [Neighbour(words[i], float(cosines[i])) for i in np.argsort(-cosines)[:most]]


def row_of(pretrained: Pretrained, word: str) -> int | None:
    tokenizer = vocabulary_of(pretrained)
    return tokenizer.vocabulary.index.get(word.lower() if tokenizer.lowercase else word)


def vocabulary_of(pretrained: Pretrained) -> WordTokenizer:
    if not isinstance(pretrained.tokenizer, WordTokenizer):
        raise DataError(f"{pretrained.name}: word vectors need a vocabulary of whole words; this one has word pieces.")
    return pretrained.tokenizer


def unit(vectors: NDArray[FloatT]) -> NDArray[FloatT]:
    """Scaled to the length one; a vector of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[FloatT] = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return scaled
