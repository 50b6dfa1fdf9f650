"""Whether vectors are alike where people say that words or sentences are: the rank correlation, layer by layer.

A text is encoded alone. Its vector is the mean over its words, or over its pieces where the encoder reads those; a word
without a vector of its own has no part in it.

Letters: K layers, D width, N pairs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from headstart.batches.rows import TextRow, text_row
from headstart.config import Table
from headstart.encoders.bert import wordpiece
from headstart.errors import DataError
from headstart.inspection.neighbours import unit
from headstart.inspection.rank_correlation import spearman, spearman_intervals
from headstart.inspection.scored_pairs import ScoredPair
from headstart.pretrained import Layers, Pretrained, Vectors, chosen_layers
from headstart.progress import Progress
from headstart.report.html_table import html_table
from headstart.text.tokenizer import WordTokenizer

FEWEST_PAIRS = 3
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LayerSimilarity:
    """Spearman's rho of a layer's cosines with the scores, and its 95 % interval by bootstrap over the pairs."""

    layer: int
    rho: float
    interval: tuple[float, float]

    def as_table(self) -> Table:
        return {"layer": self.layer, "rho": self.rho, "interval": list(self.interval)}


@dataclass(frozen=True, slots=True)
class Similarity:
    """What the layers of an encoder have in common with people's scores of pairs."""

    encoder: str
    unit: str
    """words or sentences"""
    pairs: int
    covered: int
    """Pairs of which the encoder knows something in both texts; the others are left out."""
    cut: int
    """Texts longer than what the encoder reads, whose middle was left out."""
    layers: tuple[LayerSimilarity, ...]
    gold: Array = field(repr=False, compare=False)
    """The scores of the pairs that are covered: (N,)."""
    cosines: Array = field(repr=False, compare=False)
    """Of the same pairs, in each of `layers`: (K, N)."""

    @property
    def best(self) -> LayerSimilarity:
        return max(self.layers, key=lambda layer: layer.rho)

    @property
    def left_out(self) -> int:
        return self.pairs - self.covered

    def as_table(self) -> Table:
        """The figures as plain values, for JSON; without those of each pair."""
        return {
            "encoder": self.encoder,
            "unit": self.unit,
            "pairs": self.pairs,
            "covered": self.covered,
            "left_out": self.left_out,
            "cut": self.cut,
            "layers": [layer.as_table() for layer in self.layers],
        }

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The table that people see: its header, and a row for each layer."""
        rows = [
            [str(one.layer), f"{one.rho:.3f}", " to ".join(f"{bound:.3f}" for bound in one.interval)]
            for one in self.layers
        ]
        return ["layer", "Spearman's rho", "95 % interval"], rows

    def _repr_html_(self) -> str:
        return html_table(*self.rows())


def similarity(
    pretrained: Pretrained, pairs: Sequence[ScoredPair], *, layers: Layers = "all", seed: int = 0
) -> Generator[Progress, None, Similarity]:
    """Correlate cosines with scores. layers: "all", "top", a number or several. seed: of the bootstrap."""
    numbers = chosen_layers(layers, pretrained.encoder)
    rows = Rows(pretrained, pairs)
    cosines = Cosines()
    done = 0
    for encoded, ready in pretrained.stream_rows(rows, numbers):
        for vectors in ready:
            cosines.add(vectors)
        done += encoded
        yield Progress("encoding", done, 2 * len(pairs), "texts")
    name = pretrained.name or pretrained.kind
    gold = np.array([pair.score for pair, known in zip(pairs, cosines.covered, strict=True) if known])
    if len(gold) < FEWEST_PAIRS:
        raise DataError(
            f"{name}: knows both texts of {len(gold)} of {len(pairs):,} pairs, and a correlation needs {FEWEST_PAIRS} "
            "or more. Give more pairs, or an encoder that knows their words."
        )
    by_layer = np.stack(cosines.found, axis=1)
    check_rankings(gold, by_layer, numbers)
    intervals = spearman_intervals(by_layer, gold, seed)
    return Similarity(
        encoder=name,
        unit="sentences" if any(" " in text for pair in pairs for text in (pair.first, pair.second)) else "words",
        pairs=len(pairs),
        covered=len(gold),
        cut=rows.cut,
        layers=tuple(
            LayerSimilarity(layer, spearman(found, gold), interval)
            for layer, found, interval in zip(numbers, by_layer, intervals, strict=True)
        ),
        gold=gold,
        cosines=by_layer,
    )


class Rows:
    """The two texts of each pair as rows whose words are the units that the encoder knows; counts those cut."""

    def __init__(self, pretrained: Pretrained, pairs: Sequence[ScoredPair]) -> None:
        self.pretrained, self.pairs = pretrained, pairs
        self.cut = 0

    def __iter__(self) -> Iterator[TextRow]:
        encoder, tokenizer = self.pretrained.encoder, self.pretrained.tokenizer
        for pair in self.pairs:
            for text in (pair.first, pair.second):
                row = text_row(encoder, tokenizer, text, encoder.room)
                self.cut += row.cut
                yield replace(row, word_starts=known_places(self.pretrained, row))


def known_places(pretrained: Pretrained, row: TextRow) -> NDArray[np.int64]:
    """Positions of the units between a row's marks, without those that all share the vector of an unknown one."""
    edge = pretrained.encoder.marks // 2
    places: NDArray[np.int64] = np.arange(edge, len(row.ids) - edge)
    if row.ids.ndim > 1:  # the encoder spells words by their characters, so each has a vector of its own
        return places
    tokenizer = pretrained.tokenizer
    unknown = tokenizer.vocabulary.unknown if isinstance(tokenizer, WordTokenizer) else wordpiece(tokenizer).unknown
    known: NDArray[np.int64] = places[row.ids[places] != unknown]
    return known


class Cosines:
    """The cosines of pairs whose two texts come one after the other."""

    def __init__(self) -> None:
        self.found: list[Array] = []
        """Of each pair that is covered: (K,)."""
        self.covered: list[bool] = []
        self._first: Vectors | None = None

    def add(self, vectors: Vectors) -> None:
        """The next text's, (K, units, D)."""
        if self._first is None:
            self._first = vectors
            return
        first, self._first = self._first, None
        self.covered.append(bool(first.shape[1] and vectors.shape[1]))
        if self.covered[-1]:
            a, b = (unit(one.mean(axis=1, dtype=np.float64)) for one in (first, vectors))
            self.found.append((a * b).sum(axis=1))


def check_rankings(gold: Array, cosines: Array, layers: Sequence[int]) -> None:
    if np.ptp(gold) == 0:
        raise DataError(f"All {len(gold):,} pairs have the same score, which ranks nothing. Give pairs that differ.")
    for layer, found in zip(layers, cosines, strict=True):
        if np.ptp(found) == 0:
            raise DataError(
                f"All {len(gold):,} pairs have the same cosine in layer {layer}. Leave it out with --layers."
            )
