"""The nearest neighbours of a word: in the vocabulary for static vectors, in real sentences for contextual ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from headstart.errors import ConfigError, DataError
from headstart.inspection.abilities import one_that_can
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer

FloatT = TypeVar("FloatT", np.float32, np.float64)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A word near the query: its cosine and, for contextual encoders, the sentence it stands in."""

    word: str
    cosine: float
    sentence: str | None


def word_neighbours(pretrained: Pretrained, word: str, most: int = 8) -> list[Neighbour]:
    """The words of the vocabulary with the largest cosines to `word`."""
    encoder, tokenizer = pretrained.encoder, pretrained.tokenizer
    if encoder.contextual:
        raise ConfigError(
            f"{pretrained.name or 'This encoder'}: {encoder.title} has no vector for a word alone, only for one in a "
            f"sentence, so it cannot find the neighbours of a word alone. {one_that_can('words')}"
        )
    vectors = encoder.word_vectors().cpu().numpy()
    if not isinstance(tokenizer, WordTokenizer):
        raise DataError(f"{pretrained.name}: word vectors need a vocabulary of whole words; this one has word pieces.")
    words = tokenizer.vocabulary.words
    row = tokenizer.vocabulary.index.get(word.lower() if tokenizer.lowercase else word)
    if row is None:
        raise DataError(f"'{word}' is not in the vocabulary of {len(words):,} words; the text has it too rarely.")
    cosines = unit(vectors) @ unit(vectors[row])
    cosines[[row, 0, 1, 2]] = -np.inf  # the word itself and the special tokens
    return [Neighbour(words[i], float(cosines[i]), None) for i in np.argsort(-cosines)[:most]]


def neighbours_in_context(
    pretrained: Pretrained, sentence: str, word: str, sentences: Sequence[str], most: int = 4
) -> list[Neighbour]:
    """The words in `sentences` whose top-layer vectors lie nearest to that of `word` in `sentence`.

    The mean of all vectors searched is subtracted first: contextual vectors share one large component, which would give
    every pair a cosine near one.
    """
    words = pretrained.words(sentence)
    places = [i for i, other in enumerate(words) if other.lower() == word.lower()]
    if not places:
        raise DataError(f"'{word}' is not a word of the sentence '{sentence}'.")
    tops = [vectors[-1] for vectors in pretrained.represent(sentences)]
    mean = np.concatenate(tops).mean(axis=0)
    query = unit(pretrained.represent([sentence])[0][-1, places[0]] - mean)
    found: list[Neighbour] = []
    for other, top in zip(sentences, tops, strict=True):
        if not len(top):
            continue
        cosines = unit(top - mean) @ query
        nearest = int(cosines.argmax())
        found.append(Neighbour(pretrained.words(other)[nearest], float(cosines[nearest]), other))
    return sorted(found, key=lambda neighbour: -neighbour.cosine)[:most]


def unit(vectors: NDArray[FloatT]) -> NDArray[FloatT]:
    """Scaled to the length one; a vector of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[FloatT] = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return scaled
