"""Texts as rows of an encoder's ids, with the position of each word, and batches of such rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.text.encoding import Encoding
from headstart.text.tokenizer import Tokenizer

Text = str | tuple[str, ...]
"""A raw text, or its words where they are known already."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Two texts in one row, such as a premise and a hypothesis."""

    first: Text
    second: Text


@dataclass(frozen=True, slots=True)
class Apart:
    """Two texts in a row each, whose words a head reads together: those of the first, then those of the second."""

    first: Text
    second: Text


@dataclass(frozen=True, slots=True)
class Marked:
    """Words of which those from `first` to `end` are marked, such as the predicate whose arguments are asked for.

    seen: the encoder reads the mark, as the second segment; else only the head does, and all marks of a text share its
    vectors. No word is marked where `first` is `end`.
    """

    words: tuple[str, ...]
    first: int
    end: int
    seen: bool

    @property
    def marks(self) -> NDArray[np.int64]:
        """(W,), 1 at the marked words."""
        marks = np.zeros(len(self.words), dtype=np.int64)
        marks[self.first : self.end] = 1
        return marks


AnyText = Text | Joined | Marked
"""What one row of an encoder may hold."""


def texts_in(text: AnyText | Apart) -> list[AnyText]:
    """The text of each row that an encoder reads."""
    if isinstance(text, Marked) and not text.seen:
        return [text.words]
    return [text.first, text.second] if isinstance(text, Apart) else [text]


@dataclass(frozen=True, slots=True)
class TextRow:
    """One text, or a pair, as an encoder reads it. ids: (T,) or (T, C); word_starts: (W,) positions of the words."""

    ids: NDArray[Any]
    word_starts: NDArray[np.int64]
    cut: bool
    """Part of the text was left out because it was too long."""
    segments: NDArray[np.int64] | None = None
    """(T,), 0 in the first text of a pair and 1 in the second, or at marked words; None for a single text."""
    parts: NDArray[np.int64] | None = None
    """(W,), the same for the words."""


@dataclass(frozen=True, slots=True)
class TextBatch:
    """ids: (S, T) or (S, T, C); mask, segments: (S, T); word_starts: (B, W), -1 where a row has no such word.

    Of texts that are read one by one, S = B. Of texts apart, the words of B pairs stand in S = 2 B sequences; fewer
    where rows share them, such as one sentence whose predicates are asked about in turn.
    """

    ids: Tensor
    mask: Tensor
    segments: Tensor | None
    word_starts: Tensor
    word_rows: Tensor | None = None
    """(B, W), the sequence that holds each word; None where word b, w stands in sequence b."""
    parts: Tensor | None = None
    """(B, W), 0 at words of a pair's first text and 1 at those of its second, or at marked words; None for others."""

    @property
    def at_words(self) -> Tensor:
        """(S, T), True at the positions of words."""
        real = self.word_starts >= 0
        rows = real.nonzero(as_tuple=True)[0] if self.word_rows is None else self.word_rows[real]
        places = torch.zeros_like(self.mask)
        places[rows, self.word_starts[real]] = True
        return places

    def to(self, device: torch.device) -> TextBatch:
        def moved(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.to(device)

        return TextBatch(
            self.ids.to(device),
            self.mask.to(device),
            moved(self.segments),
            self.word_starts.to(device),
            moved(self.word_rows),
            moved(self.parts),
        )


class RowBuilder(Protocol):
    """What `text_row` asks of an encoder; every `headstart.encoders.base.Encoder` has it."""

    @property
    def marks(self) -> int: ...

    def row(self, tokenizer: Tokenizer, text: str | Sequence[str], longest: int | None) -> TextRow: ...

    def pair_row(
        self, tokenizer: Tokenizer, pair: Joined, longest: int | None, *, every_piece: bool = False
    ) -> TextRow: ...


def text_row(
    encoder: RowBuilder,
    tokenizer: Tokenizer,
    text: str | Sequence[str] | Joined | Marked,
    longest: int | None = None,
    *,
    with_first: bool = False,
    every_piece: bool = False,
) -> TextRow:
    """One text (a string, or its words) or a pair of texts as a row.

    longest: tokens (words, or pieces) that are kept besides the encoder's marks; see `kept_tokens` and `kept_of_pair`.

    with_first: count the mark at the sequence's first position, such as [CLS], as if it were a word before the others.
    An encoder without marks has none: there the first position is the first word.

    every_piece: of a pair, count every piece as a word: an answer's end is told by the last piece of its last word.
    """
    if isinstance(text, Joined):
        row = encoder.pair_row(tokenizer, text, longest, every_piece=every_piece)
    elif isinstance(text, Marked):
        row = marked_row(encoder.row(tokenizer, text.words, longest), text, encoder.marks)
    else:
        row = encoder.row(tokenizer, text, longest)
    if not (with_first and encoder.marks):
        return row
    parts = None if row.parts is None else np.concatenate([[0], row.parts])
    return replace(row, word_starts=np.concatenate([[0], row.word_starts]), parts=parts)


def marked_row(row: TextRow, text: Marked, marks: int) -> TextRow:
    """With segment 1 at all pieces of the marked words. marks: the encoder's, half of them behind the text."""
    if len(row.word_starts) != len(text.words):
        raise ValueError(f"a marked text must fit into a row: {len(text.words)} words, {len(row.word_starts)} fit")
    edges = np.append(row.word_starts, len(row.ids) - marks // 2)
    segments = np.zeros(len(row.ids), dtype=np.int64)
    segments[edges[text.first] : edges[text.end]] = 1
    return replace(row, segments=segments, parts=text.marks)


def encode_text(tokenizer: Tokenizer, text: str | Sequence[str]) -> Encoding:
    return tokenizer.encode(text) if isinstance(text, str) else tokenizer.encode_words(text)


def kept_tokens(n: int, longest: int | None) -> NDArray[np.int64]:
    """Which of a text's n tokens are kept: all, or the first and the last half of `longest`.

    Both ends of a text say more about it than as many words of its beginning.
    """
    kept = np.arange(n)
    if longest is None or n <= longest:
        return kept
    return np.concatenate([kept[: longest - longest // 2], kept[n - longest // 2 :]])


def kept_of_pair(first: int, second: int, longest: int | None) -> tuple[int, int]:
    """How many tokens of each text of a pair are kept, from its beginning, so that both together have `longest`.

    As in BERT's own code, tokens are dropped one by one from the end of whichever text is longer, from the second one
    where they are equally long.
    """
    if longest is None or first + second <= longest:
        return first, second
    short = min(first, second)
    if 2 * short > longest:
        return longest - longest // 2, longest // 2
    return (first, longest - first) if first == short else (longest - second, second)


def collate(rows: Sequence[TextRow]) -> TextBatch:
    """Rows of different lengths as one batch, padded at the end."""
    ids, mask = padded([row.ids for row in rows])
    word_starts, is_word = padded([row.word_starts for row in rows])
    of_pairs = [row.parts for row in rows if row.parts is not None]
    parts = padded(of_pairs)[0] if len(of_pairs) == len(rows) else None
    return TextBatch(ids, mask, padded_segments(rows), word_starts.masked_fill(~is_word, -1), parts=parts)


def collate_texts(texts: Sequence[Sequence[TextRow]]) -> TextBatch:
    """Texts of one row each, or pairs of texts apart, of two rows each: their words follow each other.

    Rows that share their ids, one array, and have no segments are one sequence of the encoder.
    """
    rows = [row for of_text in texts for row in of_text]
    sequences = {sequence_key(row): row for row in rows}
    batch = collate(list(sequences.values()))
    if len(sequences) == len(texts) == len(rows):
        return batch
    places = {key: place for place, key in enumerate(sequences)}
    starts, is_word = padded([np.concatenate([row.word_starts for row in of_text]) for of_text in texts])
    lengths = [[len(row.word_starts) for row in of_text] for of_text in texts]
    rows_of, _ = padded(
        [
            np.repeat([places[sequence_key(row)] for row in of_text], of_rows)
            for of_text, of_rows in zip(texts, lengths, strict=True)
        ]
    )
    parts: Tensor | None
    if len(rows) > len(texts):
        parts, _ = padded([np.repeat(np.arange(len(of_rows)), of_rows) for of_rows in lengths])
    else:
        marks = [row.parts for row in rows if row.parts is not None]
        parts = padded(marks)[0] if marks else None
    return TextBatch(batch.ids, batch.mask, batch.segments, starts.masked_fill(~is_word, -1), rows_of, parts)


def sequence_key(row: TextRow) -> int:
    return id(row.ids) if row.segments is None else id(row)


def padded_segments(rows: Sequence[TextRow]) -> Tensor | None:
    """(B, T), or None if no row is a pair: without segments the encoder has less to look up."""
    if all(row.segments is None for row in rows):
        return None
    return padded([np.zeros(len(row.ids)) if row.segments is None else row.segments for row in rows])[0]


def padded(rows: Sequence[NDArray[Any]]) -> tuple[Tensor, Tensor]:
    """Rows of different lengths as one (B, T, ...) tensor of ids, and its mask."""
    T = max(1, max((len(row) for row in rows), default=0))
    ids = np.zeros((len(rows), T, *(rows[0].shape[1:] if rows else ())), dtype=np.int64)
    mask = np.zeros((len(rows), T), dtype=bool)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = True
    return torch.from_numpy(ids), torch.from_numpy(mask)


def sorted_batches(lengths: Sequence[int], most_tokens: int) -> list[list[int]]:
    """Row numbers in batches of similar length, shortest first; `most_tokens` is a batch's size with its padding."""
    batches: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        # Sorted, so row i is the longest of the batch it joins.
        if batches and (len(batches[-1]) + 1) * max(1, lengths[i]) <= most_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
