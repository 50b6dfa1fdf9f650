"""Where the attention heads of a BERT look: the probabilities of one sentence, of its pieces or of its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.batches.rows import collate, text_row
from headstart.config import Table
from headstart.errors import ConfigError, DataError
from headstart.inspection.heads import Cells, HeadSummary, heads_table, shares_table, summarise
from headstart.pretrained import Pretrained
from headstart.report.html_table import html_table
from headstart.text.wordpiece import WordPieceTokenizer

MARK = -1
"""Instead of the number of a word, for the marks [CLS] and [SEP]."""
MOST_TARGETS = 3
"""That are shown of each word."""
Numbers = int | Sequence[int] | None
"""Of layers or heads, counted from 1; None: all."""


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention of some heads to one sentence.

    probabilities[l, h, i, j] is how much of unit i's new vector in layer layers[l] comes from unit j by way of head
    heads[h]: every row i sums to 1.
    """

    encoder: str
    layers: tuple[int, ...]
    """From 1: attention number k leads from the representation R_(k-1) to R_k."""
    heads: tuple[int, ...]
    """From 1."""
    units: tuple[str, ...]
    """[CLS], the pieces, [SEP]; or [CLS], the words, [SEP]."""
    words: tuple[str, ...]
    word_of: tuple[int, ...]
    """The number of each unit's word in `words`; -1 for [CLS] and [SEP]."""
    probabilities: NDArray[np.float32]
    """(layers, heads, units, units)"""

    def of(self, layer: int, head: int) -> NDArray[np.float32]:
        """(units, units) of one head, by its numbers."""
        if layer not in self.layers or head not in self.heads:
            raise ConfigError(
                f"There is no head {head} of layer {layer} here; there are the heads {listed(self.heads)} of the "
                f"layers {listed(self.layers)}."
            )
        chosen: NDArray[np.float32] = self.probabilities[self.layers.index(layer), self.heads.index(head)]
        return chosen

    def at_words(self) -> Attention:
        """With a unit for each word: attention to a word is the sum over its pieces, attention from it their mean.

        This is what Clark et al. (2019) do; rows still sum to 1.
        """
        first = np.flatnonzero([i == 0 or w == MARK or w != self.word_of[i - 1] for i, w in enumerate(self.word_of)])
        counts = np.diff(np.append(first, len(self.units)))
        to_words = np.add.reduceat(self.probabilities, first, axis=3)
        between = (np.add.reduceat(to_words, first, axis=2) / counts[:, None]).astype(np.float32)
        word_of = tuple(self.word_of[i] for i in first)
        units = tuple(self.units[i] if w == MARK else self.words[w] for i, w in zip(first, word_of, strict=True))
        return replace(self, units=units, word_of=word_of, probabilities=between)

    def summary(self) -> tuple[HeadSummary, ...]:
        """Of every head, layer by layer."""
        return tuple(
            summarise(layer, head, self.of(layer, head), np.array(self.word_of) != MARK)
            for layer in self.layers
            for head in self.heads
        )

    def _repr_html_(self) -> str:
        return html_table(*heads_table(self.summary()))

    def as_table(self) -> Table:
        """Everything as plain values, for JSON."""
        return {
            "encoder": self.encoder,
            "layers": list(self.layers),
            "heads": list(self.heads),
            "units": list(self.units),
            "words": list(self.words),
            "word_of": list(self.word_of),
            "probabilities": self.probabilities.tolist(),
        }


def attend(
    pretrained: Pretrained,
    sentence: str | Sequence[str],
    layers: Numbers = None,
    heads: Numbers = None,
    *,
    at_words: bool = False,
) -> Attention:
    """The attention of a BERT's heads to a sentence, or to a list of words.

    layers, heads: a number from 1, several, or all. at_words: a unit for each word instead of each piece.
    """
    encoder, tokenizer = pretrained.encoder, pretrained.tokenizer
    row = text_row(encoder, tokenizer, sentence)
    pretrained.check_lengths([row])
    encoder.eval()
    batch = collate([row])
    with torch.no_grad():
        _, found = encoder.attention(batch.ids, batch.mask)
    if not isinstance(tokenizer, WordPieceTokenizer) or not len(row.word_starts):
        raise DataError(f"There is no word to attend to in '{sentence}'. Give a sentence.")
    probabilities = found[:, 0].numpy()
    L, H, T, _ = probabilities.shape
    layer_numbers, head_numbers = numbers_of(layers, L, "layer"), numbers_of(heads, H, "head")
    words = pretrained.words(sentence) if isinstance(sentence, str) else sentence
    places = np.searchsorted(row.word_starts, np.arange(T), side="right") - 1
    places[[0, -1]] = MARK
    attention = Attention(
        encoder=pretrained.name or encoder.title,
        layers=layer_numbers,
        heads=head_numbers,
        units=tuple(tokenizer.pieces[i] for i in row.ids),
        words=tuple(words),
        word_of=tuple(places.tolist()),
        probabilities=probabilities[np.ix_([n - 1 for n in layer_numbers], [n - 1 for n in head_numbers])],
    )
    return attention.at_words() if at_words else attention


def listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def numbers_of(given: Numbers, count: int, what: str) -> tuple[int, ...]:
    wanted = range(1, count + 1) if given is None else [given] if isinstance(given, int) else given
    for number in wanted:
        if not 1 <= number <= count:
            raise ConfigError(f"There is no {what} {number}: this encoder has the {what}s 1 to {count}.")
    return tuple(wanted)


def words_table(attention: Attention) -> Cells:
    """Of a single head, a row for each unit: what it looks at most, with the shares in %."""
    (layer,), (head,) = attention.layers, attention.heads
    rows = []
    for unit, row in zip(attention.units, attention.of(layer, head), strict=True):
        best = np.argsort(-row, kind="stable")[:MOST_TARGETS]
        rows.append([unit, *(f"{attention.units[place]} {100 * row[place]:.0f}" for place in best)])
    return ["from", "most to", *[""] * (len(rows[0]) - 2)], rows


def table_of(attention: Attention) -> Cells:
    """As much detail as the number of heads leaves room for."""
    if len(attention.layers) == len(attention.heads) == 1:
        return words_table(attention)
    in_rows_and_columns = min(len(attention.layers), len(attention.heads)) > 1
    return (heads_table if in_rows_and_columns else shares_table)(attention.summary())
