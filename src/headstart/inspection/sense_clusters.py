"""The occurrences of a word in a text, clustered by their vectors: which senses, or uses, an encoder tells apart.

As for neighbours in context, the mean vector over all words of the sentences is subtracted, and vectors have length
one. No label is used: `headstart.inspection.senses` measures whether vectors agree with known senses.

Letters: n occurrences, D width, C clusters.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headstart.errors import ConfigError, DataError
from headstart.inspection.abilities import one_that_can
from headstart.inspection.clustering import Array, flat, silhouette, split
from headstart.inspection.distinctive import context_of, distinctive_words
from headstart.inspection.neighbours import unit
from headstart.inspection.occurrence_text import MarkedWord, encoded, sentences_of
from headstart.inspection.sense_results import ClusteredOccurrence, SenseCluster, SenseClusters
from headstart.pretrained import Layers, Pretrained, chosen_layers
from headstart.progress import Progress
from headstart.text.documents import TextConfig, discover, read_blocks, settle_layout

MOST = 500
"""Sentences that are clustered, by default."""
NAMED_BY = 4
"""Words in the name of a cluster."""
READ_BETWEEN = 1 << 20
"""Bytes between two reports of progress."""


def sense_clusters(
    pretrained: Pretrained,
    word: str,
    among: Sequence[str | Path],
    *,
    clusters: int | None = None,
    most: int = MOST,
    layer: Layers = "top",
    field: str | None = None,
    seed: int = 0,
) -> Generator[Progress, None, SenseClusters]:
    """Cluster the occurrences of `word`, in any case, in a text.

    clusters: None takes the number from 2 to 8 with the best silhouette, or one where no split is better than those of
    a normal cloud. most: sentences, drawn evenly from those with the word; its first place in each counts. field: the
    column of tables with the text. seed: of k-means and of the normal clouds.
    """
    name = pretrained.name or pretrained.kind
    if not pretrained.encoder.contextual:
        raise ConfigError(
            f"{name}: gives '{word}' one vector, whatever its sentence, so it cannot tell occurrences apart. "
            f"{one_that_can('contexts')}"
        )
    for value, option in ((most, "most"), (clusters, "clusters")):
        if value is not None and value < 1:
            raise ConfigError(f"{option} is a count of one or more; got {value}.")
    (number,) = chosen_layers(layer, pretrained.encoder)
    if not among:
        raise ConfigError("There is no text to search: give --among TEXT.")
    found, drawn = yield from draw_sentences(word, among, field, most)
    places, vectors = yield from vectors_of(pretrained, word, drawn, number)
    if clusters is not None and clusters > len(places):
        raise ConfigError(f"{len(places)} occurrences of '{word}' cannot make {clusters} clusters.")
    numbers = split(vectors, clusters, seed)
    points, variances = flat(vectors)
    return SenseClusters(
        encoder=name,
        layer=number,
        word=word,
        found=found,
        silhouette=silhouette(vectors, numbers),
        variances=variances,
        clusters=described(places, vectors, numbers, points),
    )


def draw_sentences(
    word: str, among: Sequence[str | Path], field: str | None, most: int
) -> Generator[Progress, None, tuple[int, list[str]]]:
    """How many sentences of a text have the word, and `most` of them, evenly from the whole text, each once."""
    paths = discover(among)
    config, _ = settle_layout(paths, TextConfig(field=field))
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    in_all = sum(path.stat().st_size for path in paths)
    sample, read, told = EvenSample(most), 0, 0

    def on_bytes(n: int) -> None:
        nonlocal read
        read = n

    for block in read_blocks(paths, config, on_bytes):
        if pattern.search(block.text):  # splitting a text into sentences is slower than looking into it
            for sentence in sentences_of(block.text, config):
                if pattern.search(sentence):
                    sample.add(sentence)
        if read - told >= READ_BETWEEN:
            told = read
            yield Progress("reading", read, in_all)
    if not sample.seen:
        raise DataError(f"{', '.join(map(str, paths[:3]))}: has no sentence with the word '{word}'.")
    return sample.seen, sample.drawn()


class EvenSample:
    """Evenly spread items of a stream of unknown length, in bounded memory."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen = 0
        self._kept: list[str] = []
        self._stride = 1

    def add(self, item: str) -> None:
        if self.seen % self._stride == 0:
            self._kept.append(item)
            if len(self._kept) > 4 * self.most:
                self._kept, self._stride = self._kept[::2], 2 * self._stride
        self.seen += 1

    def drawn(self) -> list[str]:
        distinct = list(dict.fromkeys(self._kept))
        places = np.linspace(0, len(distinct) - 1, min(self.most, len(distinct))).round().astype(int)
        return [distinct[place] for place in places]


def vectors_of(
    pretrained: Pretrained, word: str, drawn: Sequence[str], layer: int
) -> Generator[Progress, None, tuple[list[MarkedWord], Array]]:
    """The word's first place in each sentence, and its vector less the mean of all words, of length one: (n, D)."""
    places, rows, numbers = [], [], []
    for sentence in drawn:
        row, bounds = encoded(pretrained, sentence)
        own = [i for i, (a, z) in enumerate(bounds) if sentence[a:z].casefold() == word.casefold()]
        if own and not row.cut:
            places.append(MarkedWord(sentence, *bounds[own[0]].tolist()))
            rows.append(row)
            numbers.append(own[0])
    if not places:
        name = pretrained.name or pretrained.kind
        raise DataError(f"'{word}' is not one word as {name} reads it, or stands in sentences too long for it only.")
    found: list[NDArray[np.float32]] = []
    total, count, done = np.zeros(pretrained.encoder.shape[1]), 0, 0
    for n, ready in pretrained.stream_rows(rows, layer):
        for vectors in ready:
            total, count = total + vectors[0].sum(axis=0, dtype=np.float64), count + vectors.shape[1]
            found.append(vectors[0, numbers[len(found)]])
        done += n
        yield Progress("encoding", done, len(rows), "sentences")
    return places, unit(np.stack(found).astype(np.float64) - total / count)


def described(
    places: Sequence[MarkedWord], vectors: Array, numbers: NDArray[np.int64], points: Array
) -> tuple[SenseCluster, ...]:
    """The clusters, the largest first, with their names and their occurrences, the most central first."""
    contexts = [context_of(place.sentence, place.start, place.end) for place in places]
    found: list[SenseCluster] = []
    for number in np.unique(numbers):
        own = np.flatnonzero(numbers == number)
        cosines = unit(vectors[own]) @ unit(vectors[own].mean(axis=0))
        ordered = own[np.argsort(-cosines, kind="stable")]
        cosine_of = dict(zip(own.tolist(), cosines.tolist(), strict=True))
        inside = [contexts[i] for i in own]
        outside = [contexts[i] for i in np.flatnonzero(numbers != number)]
        occurrences = [ClusteredOccurrence(places[i], cosine_of[i], *map(float, points[i])) for i in ordered.tolist()]
        found.append(SenseCluster(distinctive_words(inside, outside)[:NAMED_BY], tuple(occurrences)))
    return tuple(sorted(found, key=lambda cluster: -len(cluster.occurrences)))
