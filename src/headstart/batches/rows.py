"""What a labelled task reads: texts as an encoder's ids, with the place of each word in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.text.characters import characters_of
from headstart.text.encoding import Encoding, UnitIds
from headstart.text.tokenizer import Tokenizer
from headstart.text.vocabulary import SENTENCE_END, SENTENCE_START
from headstart.text.wordpiece import WordPieceTokenizer

Text = str | tuple[str, ...]
"""A raw text, or its words."""
MARKS = 2
"""Units that BERT and ELMo add around a text."""


@dataclass(frozen=True, slots=True)
class TextRow:
    """One text as an encoder reads it. ids: (T,) or (T, C); word_starts: (W,) places of the words in it."""

    ids: NDArray[Any]
    word_starts: NDArray[np.int64]
    cut: bool
    """Part of the text was left out because it was too long."""


@dataclass(frozen=True, slots=True)
class TextBatch:
    """ids: (B, T) or (B, T, C); mask, segments: (B, T); word_starts: (B, W), -1 where a row has no such word."""

    ids: Tensor
    mask: Tensor
    segments: Tensor | None
    word_starts: Tensor
    gold: Tensor | None = None

    @property
    def at_words(self) -> Tensor:
        """(B, T), True at the words' places."""
        rows, columns = (self.word_starts >= 0).nonzero(as_tuple=True)
        places = torch.zeros_like(self.mask)
        places[rows, self.word_starts[rows, columns]] = True
        return places

    def to(self, device: torch.device) -> TextBatch:
        segments = None if self.segments is None else self.segments.to(device)
        gold = None if self.gold is None else self.gold.to(device)
        return TextBatch(self.ids.to(device), self.mask.to(device), segments, self.word_starts.to(device), gold)


Builder = Callable[[Tokenizer, Any, NDArray[np.int64]], tuple[NDArray[Any], NDArray[np.int64]]]
"""(tokenizer, encoding, units to keep) -> (ids, places of the words)."""


def static_row(tokenizer: Tokenizer, encoding: Encoding, kept: NDArray[np.int64]) -> tuple[NDArray[Any], Any]:
    return encoding.ids[kept], np.arange(len(kept))


def elmo_row(tokenizer: Tokenizer, encoding: Encoding, kept: NDArray[np.int64]) -> tuple[NDArray[Any], Any]:
    """Characters of the words, with the sentence marks around them."""
    words = [SENTENCE_START, *(encoding.units[i] for i in kept), SENTENCE_END]
    return np.stack([characters_of(word) for word in words]), 1 + np.arange(len(kept))


def bert_row(tokenizer: Any, encoding: Encoding | UnitIds, kept: NDArray[np.int64]) -> tuple[NDArray[Any], Any]:
    """[CLS] pieces [SEP]; a word stands where its first piece does."""
    ids = np.empty(len(kept) + MARKS, dtype=np.int64)
    ids[0], ids[1:-1], ids[-1] = tokenizer.cls, encoding.ids[kept], tokenizer.sep
    words = encoding.words[kept]
    begins = np.ones(len(kept), dtype=bool)
    np.not_equal(words[1:], words[:-1], out=begins[1:])
    return ids, 1 + np.flatnonzero(begins)


BUILDERS: dict[str, Builder] = {"static": static_row, "elmo": elmo_row, "bert": bert_row}


def text_row(
    kind: str,
    tokenizer: Tokenizer,
    text: str | Sequence[str],
    longest: int | None = None,
    *,
    with_first: bool = False,
) -> TextRow:
    """text: a string, or its words.

    longest: units (words, or pieces) that are kept; of a longer text the first half and the last half of them.

    with_first: the sequence's first position, such as [CLS], stands before the words as if it were one.
    """
    encoding = units_of(kind, tokenizer, text)
    n = len(encoding.ids)
    kept = np.arange(n)
    if longest is not None and n > longest:
        # Both ends of a text tell more of its point than as many words of its beginning.
        kept = np.concatenate([kept[: longest - longest // 2], kept[n - longest // 2 :]])
    ids, word_starts = BUILDERS[kind](tokenizer, encoding, kept)
    if with_first:
        word_starts = np.concatenate([[0], word_starts])
    return TextRow(ids, word_starts.astype(np.int64), len(kept) < n)


def units_of(kind: str, tokenizer: Tokenizer, text: str | Sequence[str]) -> Encoding | UnitIds:
    if not isinstance(text, str):
        return tokenizer.encode_words(text)
    # BERT's row needs neither the pieces' spelling nor their places in the text, which take most of the time.
    if kind == "bert" and isinstance(tokenizer, WordPieceTokenizer):
        return tokenizer.encode_ids(text)
    return tokenizer.encode(text)


def collate(rows: Sequence[TextRow], gold: NDArray[np.int64] | None = None) -> TextBatch:
    """Rows of different lengths as one batch, padded at the end."""
    ids, mask = padded([row.ids for row in rows])
    word_starts, is_word = padded([row.word_starts for row in rows])
    targets = None if gold is None else torch.from_numpy(np.asarray(gold, dtype=np.int64))
    return TextBatch(ids, mask, None, word_starts.masked_fill(~is_word, -1), targets)


def padded(rows: Sequence[NDArray[Any]]) -> tuple[Tensor, Tensor]:
    """Rows of different length as one (B, T, ...) tensor of ids, and its mask."""
    T = max(1, max(len(row) for row in rows))
    ids = np.zeros((len(rows), T, *rows[0].shape[1:]), dtype=np.int64)
    mask = np.zeros((len(rows), T), dtype=bool)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = True
    return torch.from_numpy(ids), torch.from_numpy(mask)


def sorted_batches(lengths: Sequence[int], most_units: int) -> list[list[int]]:
    """Rows of like length together, as many as fit in `most_units` with their padding; shortest first."""
    batches: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # Sorted, so row i is the longest of the batch it joins.
        if batches and (len(batches[-1]) + 1) * max(1, lengths[i]) <= most_units:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
