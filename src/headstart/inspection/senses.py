"""One word in several senses: whether an encoder's vectors of it lie nearer to each other within a sense than between.

As for neighbours in context, the mean vector of a layer, here over all words of all sentences, is subtracted first:
contextual vectors share one large component, which would give every pair a cosine near one.

Two occurrences between the same two words are never compared. Any encoder finds them alike, whatever their senses; and
where the senses are matched, so that each has the same neighbours, an occurrence's twin is always in another sense.

Letters: n occurrences of a word, K layers, D width, R rounds of the bootstrap.
"""

from __future__ import annotations

import tomllib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from headstart.batches.order import seed_of
from headstart.comparison.significance import ROUNDS, interval
from headstart.errors import DataError
from headstart.inspection.neighbours import unit
from headstart.metrics import ACCURACY, Counts
from headstart.pretrained import Pretrained
from headstart.progress import Progress

TIE = 1e-5
"""Cosines that differ by less are equal, up to the rounding of float32."""
COSINE_DIGITS = 6
"""What vectors of float32 give; equal vectors then have a cosine of exactly one."""
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AmbiguousWord:
    """A word and, for each of its senses, sentences in which it stands once. Sentences are split at spaces."""

    word: str
    senses: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        if len(self.senses) < 2:
            raise DataError(f"'{self.word}': needs two senses or more to compare; got {len(self.senses)}.")
        for sense, sentences in self.senses.items():
            for sentence in sentences:
                if sentence.split().count(self.word) != 1:
                    raise DataError(f"'{self.word}', {sense}: must stand once, as a word, in '{sentence}'.")
            if len({self.neighbours(sentence) for sentence in sentences}) < 2:
                raise DataError(
                    f"'{self.word}', {sense}: needs two sentences or more in which it stands between other words."
                )

    def neighbours(self, sentence: str) -> tuple[str, str]:
        """The words before and after it, in lower case; empty at the ends of the sentence."""
        words = ["", *sentence.lower().split(), ""]
        place = sentence.split().index(self.word) + 1
        return words[place - 1], words[place + 1]

    @property
    def occurrences(self) -> list[Occurrence]:
        return [
            Occurrence(number, tuple(sentence.split()), self.neighbours(sentence))
            for number, sentences in enumerate(self.senses.values())
            for sentence in sentences
        ]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A word in a sentence. sense: its number."""

    sense: int
    sentence: tuple[str, ...]
    neighbours: tuple[str, str]


def own_words() -> list[AmbiguousWord]:
    """The words of the package: ten sentences for each sense, whose neighbouring words do not tell the sense."""
    table = tomllib.loads(files("headstart.inspection").joinpath("senses.toml").read_text(encoding="utf-8"))
    return [
        AmbiguousWord(word, {name: tuple(sentences) for name, sentences in senses.items()})
        for word, senses in table.items()
    ]


@dataclass(frozen=True, slots=True)
class WordInLayer:
    """One word: mean cosines of two occurrences in one sense and in two, and how often the sense is told rightly."""

    word: str
    within: float
    between: float
    accuracy: float

    @property
    def difference(self) -> float:
        return self.within - self.between


@dataclass(frozen=True, slots=True)
class SensesInLayer:
    """One layer; within, between, difference: means over the words. Intervals: 95 %, by bootstrap over sentences."""

    layer: int
    within: float
    between: float
    difference: float
    interval: tuple[float, float]
    accuracy: float
    """Of the nearest centroid: the sense of which the occurrences between other words have the nearest mean."""
    accuracy_interval: tuple[float, float]
    words: tuple[WordInLayer, ...]
    counts: Counts = field(repr=False, compare=False)
    """(occurrences, 2): right and 1, for paired tests between layers and encoders."""


@dataclass(frozen=True, slots=True)
class Senses:
    """All layers of an encoder. chance: the accuracy of guessing."""

    encoder: str
    sentences: int
    chance: float
    layers: tuple[SensesInLayer, ...]

    @property
    def best(self) -> SensesInLayer:
        return max(self.layers, key=lambda layer: layer.accuracy)


def compare_senses(
    pretrained: Pretrained, words: Sequence[AmbiguousWord] | None = None, *, seed: int = 0
) -> Generator[Progress, None, Senses]:
    """Compare each word's vectors within and between its senses, in every layer. words: default those of `own_words`.

    Static vectors of a word are the same in every sense, so that the difference is 0 and the accuracy chance.
    """
    words = own_words() if words is None else words
    comparable = [Comparable.of(word) for word in words]
    vectors = yield from occurrence_vectors(pretrained, words)
    ends = np.cumsum([len(one.senses) for one in comparable])[:-1]
    layers = [senses_in_layer(layer, comparable, np.split(vectors[layer], ends), seed) for layer in range(len(vectors))]
    return Senses(
        encoder=pretrained.name or pretrained.kind,
        sentences=vectors.shape[1],
        chance=float(np.concatenate([np.full(len(one.senses), 1 / len(one.names)) for one in comparable]).mean()),
        layers=tuple(layers),
    )


@dataclass(frozen=True, slots=True)
class Comparable:
    """Which occurrences of a word are compared. senses: (n,); names: all of them; apart: (n, n), other neighbours."""

    word: str
    senses: NDArray[np.int64]
    names: NDArray[np.int64]
    apart: NDArray[np.bool_]

    @classmethod
    def of(cls, word: AmbiguousWord) -> Comparable:
        found = word.occurrences
        apart = [[one.neighbours != other.neighbours for other in found] for one in found]
        return cls(word.word, np.array([one.sense for one in found]), np.arange(len(word.senses)), np.array(apart))


def occurrence_vectors(
    pretrained: Pretrained, words: Sequence[AmbiguousWord]
) -> Generator[Progress, None, NDArray[np.float32]]:
    """The vectors of all occurrences of all words, less each layer's mean: (K, occurrences, D)."""
    found = [(word.word, one.sentence) for word in words for one in word.occurrences]
    total, count = np.zeros(pretrained.encoder.shape), 0
    own: list[NDArray[np.float32]] = []
    for (word, sentence), vectors in zip(found, pretrained.stream([sentence for _, sentence in found]), strict=True):
        total, count = total + vectors.sum(axis=1, dtype=np.float64), count + vectors.shape[1]
        own.append(vectors[:, sentence.index(word)])
        yield Progress("encoding", len(own), len(found), "sentences")
    centred: NDArray[np.float32] = np.stack(own, axis=1) - (total / count).astype(np.float32)[:, None]
    return centred


def senses_in_layer(
    layer: int, words: Sequence[Comparable], vectors: Sequence[NDArray[np.float32]], seed: int
) -> SensesInLayer:
    """vectors: (n, D) of each word."""
    by_word: list[WordInLayer] = []
    resampled: list[Array] = []
    counts: list[Counts] = []
    for word, own in zip(words, vectors, strict=True):
        units = unit(own).astype(np.float64)
        cosines = np.round(units @ units.T, COSINE_DIGITS)
        within, between = mean_cosines(word, cosines, np.ones((1, len(own))))
        right = told_rightly(word, units)
        by_word.append(WordInLayer(word.word, float(within[0]), float(between[0]), float(right.mean())))
        counts.append(np.stack([right, np.ones(len(right))], axis=1))
        within, between = mean_cosines(word, cosines, drawn_occurrences(word, seed))
        resampled.append(within - between)
    all_counts = np.concatenate(counts)
    low, high = np.quantile(np.mean(resampled, axis=0), [0.025, 0.975])
    return SensesInLayer(
        layer=layer,
        within=float(np.mean([word.within for word in by_word])),
        between=float(np.mean([word.between for word in by_word])),
        difference=float(np.mean([word.difference for word in by_word])),
        interval=(float(low), float(high)),
        accuracy=ACCURACY.of(all_counts),
        accuracy_interval=interval(all_counts[None], ACCURACY, seed),
        words=tuple(by_word),
        counts=all_counts,
    )


def drawn_occurrences(word: Comparable, seed: int) -> Array:
    """How often each occurrence is drawn in each round, each sense keeping its number of occurrences: (R, n).

    A round in which no sense has two occurrences to compare, as may happen with few sentences, is left undrawn.
    """
    rng = np.random.default_rng(seed_of(seed, "senses", word.word))
    drawn = np.ones((ROUNDS, len(word.senses)))
    for sense in word.names:
        places = np.flatnonzero(word.senses == sense)
        drawn[:, places] = rng.multinomial(len(places), np.full(len(places), 1 / len(places)), size=ROUNDS)
    for pairs in pairs_of(word):
        drawn[((drawn @ pairs) * drawn).sum(axis=1) == 0] = 1.0
    return drawn


def pairs_of(word: Comparable) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which occurrences are compared within a sense and between senses: (n, n) each."""
    same = word.senses[:, None] == word.senses
    return same & word.apart, ~same & word.apart


def mean_cosines(word: Comparable, cosines: Array, drawn: Array) -> tuple[Array, Array]:
    """Over pairs in one sense and over pairs in two, of each round: (R,) each. drawn: (R, n), how often each counts."""
    within, between = (
        ((drawn @ (cosines * pairs)) * drawn).sum(axis=1) / ((drawn @ pairs) * drawn).sum(axis=1)
        for pairs in pairs_of(word)
    )
    return within, between


def told_rightly(word: Comparable, units: Array) -> Array:
    """Of each occurrence, whether the nearest centroid of a sense's occurrences, between other words, is its own: (n,).

    Where several are equally near, the share that a guess among them would have.
    """
    members = (word.senses == word.names[:, None]).astype(np.float64)
    shares = np.empty(len(units))
    for number, (vector, sense) in enumerate(zip(units, word.senses, strict=True)):
        centroids = (members * word.apart[number]) @ units
        cosines = unit(centroids) @ vector
        nearest = cosines >= cosines.max() - TIE
        shares[number] = nearest[sense] / nearest.sum()
    return shares
