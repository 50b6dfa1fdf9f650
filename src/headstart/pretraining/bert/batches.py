"""BERT's batches from shards: masks drawn anew each time a text is seen, and pairs of real or random text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from headstart.batches.order import Permutation, seed_of
from headstart.config import Section
from headstart.errors import DataError, Remedy
from headstart.pretraining.sequences import Ids, Windows
from headstart.text.shards import Shards


class MaskedConfig(Section):
    """The masked language model and next-sentence prediction."""

    mask_rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of the pieces that are masked and predicted."""
    rare_first: float = Field(default=0.0, ge=0, le=1)
    """How much rarer pieces are preferred: the chance of a piece is its frequency to the power of minus this."""
    corruption: Literal["bert", "mask"] = "bert"
    """What stands in the place of a masked piece: [MASK] in 80 % of the cases, a random piece in 10 % and the piece
    itself in 10 % ("bert"), or always [MASK] ("mask")."""
    whole_words: bool = False
    """Choose whole words, so that a word's pieces are masked together."""
    nsp: bool = True
    """Also predict whether the second text follows the first or is a random one of another document."""
    length: int = Field(default=128, ge=8)
    """Pieces in a sequence, [CLS] and [SEP] included."""


@dataclass(frozen=True, slots=True)
class PieceTable:
    """What masking needs to know of the vocabulary."""

    size: int
    pad: int
    cls: int
    sep: int
    mask: int
    continues: NDArray[np.bool_]
    """(V,) True where a piece continues a word (##)."""
    log_frequency: NDArray[np.float64]
    """(V,) The log of each piece's share of the text."""


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """[CLS] A [SEP] B [SEP] with some pieces masked.

    ids, mask, segments: (B, T); positions: (M,) of the masked pieces, flat into B * T; gold: (M,) their ids;
    is_next: (B,), True where B follows A in the text, or None when that task is off.
    """

    ids: Tensor
    mask: Tensor
    segments: Tensor
    positions: Tensor
    gold: Tensor
    is_next: Tensor | None

    def to(self, device: torch.device) -> MaskedBatch:
        return MaskedBatch(
            self.ids.to(device),
            self.mask.to(device),
            self.segments.to(device),
            self.positions.to(device),
            self.gold.to(device),
            None if self.is_next is None else self.is_next.to(device),
        )

    def counts(self) -> dict[str, int]:
        counts = {"masked": len(self.gold)}
        if self.is_next is not None:
            counts["next"] = len(self.is_next)
        return counts

    def parts(self, n: int) -> list[MaskedBatch]:
        """Its sequences in n batches of like size, for as many cores; fewer if there are fewer sequences."""
        B, T = self.ids.shape
        bounds = sorted({B * part // n for part in range(n + 1)})
        return [self._rows(first, last, T) for first, last in pairwise(bounds)]

    def share(self, rank: int, world: int) -> MaskedBatch:
        B, T = self.ids.shape
        return self._rows(B * rank // world, B * (rank + 1) // world, T)

    def _rows(self, first: int, last: int, T: int) -> MaskedBatch:
        mine = (self.positions >= first * T) & (self.positions < last * T)
        return MaskedBatch(
            self.ids[first:last],
            self.mask[first:last],
            self.segments[first:last],
            self.positions[mine] - first * T,
            self.gold[mine],
            None if self.is_next is None else self.is_next[first:last],
        )


class MaskedBatches:
    """Batch i of a corpus, for any i: a pure function of (seed, i)."""

    def __init__(
        self, shards: Shards, pieces: PieceTable, config: MaskedConfig, *, batch_sequences: int, seed: int
    ) -> None:
        if config.nsp and shards.n_documents < 2:
            raise DataError(
                f"Next-sentence prediction draws random texts from another document, but the text has "
                f"{shards.n_documents} document.",
                Remedy(
                    "Separate documents by blank lines, pass --one-per-line if each line is one, or pass {}.",
                    "objective.nsp=false",
                    "--no-nsp",
                ),
            )
        self.shards, self.pieces, self.config = shards, pieces, config
        self.batch_sequences = batch_sequences
        self.seed = seed
        self.room = config.length - (3 if config.nsp else 2)
        self.windows = Windows(shards, self.room)
        self._order: tuple[int, Permutation] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-len(self.windows) // self.batch_sequences)

    def __getitem__(self, number: int) -> MaskedBatch:
        """Batch `number` of the run; numbers go on through the epochs."""
        epoch, place = divmod(number, len(self))
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, Permutation(len(self.windows), self.seed, "windows", epoch))
        first = place * self.batch_sequences
        last = min(first + self.batch_sequences, len(self.windows))
        rng = np.random.default_rng(seed_of(self.seed, "masks", number))
        rows = [self._sequence(int(window), rng) for window in self._order[1].take(np.arange(first, last))]
        return self._collate(rows, rng)

    def _sequence(self, window: int, rng: np.random.Generator) -> Row:
        place = self.windows.place(window)
        ids, sentence_ends = self.shards.document(place.document)
        # Documents are cut evenly, so most windows are shorter than a sequence; they read on into the next one, so that
        # sequences are full. Text seen twice in an epoch has other masks the second time.
        text = ids[place.start : place.start + self.room]
        if not self.config.nsp:
            return Row(text, None, True)
        ends = sentence_ends - place.start
        split = split_point(len(text), ends[(ends > 0) & (ends < len(text))], rng)
        if split is not None and rng.random() < 0.5:
            return Row(text[:split], text[split:], True)
        first = text[: split or len(text)][: self.room - 1]
        return Row(first, self._random_text(place.document, self.room - len(first), rng), False)

    def _random_text(self, not_document: int, room: int, rng: np.random.Generator) -> Ids:
        """Up to `room` units of another document, from the start of one of its sentences."""
        other = int(rng.integers(self.shards.n_documents - 1))
        ids, sentence_ends = self.shards.document(other + (other >= not_document))
        sentence = int(rng.integers(len(sentence_ends)))
        start = int(sentence_ends[sentence - 1]) if sentence else 0
        return ids[start : start + room]

    def _collate(self, rows: list[Row], rng: np.random.Generator) -> MaskedBatch:
        pieces = self.pieces
        T = max(row.length for row in rows)
        ids = np.full((len(rows), T), pieces.pad, dtype=np.int64)
        segments = np.zeros((len(rows), T), dtype=np.int64)
        mask = np.zeros((len(rows), T), dtype=bool)
        positions: list[NDArray[np.int64]] = []
        gold: list[NDArray[np.int64]] = []
        for number, row in enumerate(rows):
            line, second_from = row.joined(pieces.cls, pieces.sep)
            masked = choose_positions(line, pieces, self.config, rng)
            positions.append(masked + number * T)
            gold.append(line[masked])
            line[masked] = pieces.mask if self.config.corruption == "mask" else corrupt(line[masked], pieces, rng)
            ids[number, : len(line)] = line
            segments[number, second_from : len(line)] = 1
            mask[number, : len(line)] = True
        is_next = torch.tensor([row.is_next for row in rows]) if self.config.nsp else None
        return MaskedBatch(
            torch.from_numpy(ids),
            torch.from_numpy(mask),
            torch.from_numpy(segments),
            torch.from_numpy(np.concatenate(positions)),
            torch.from_numpy(np.concatenate(gold)),
            is_next,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence before its marks: text A, and text B where next-sentence prediction is on."""

    first: Ids
    second: Ids | None
    is_next: bool

    @property
    def length(self) -> int:
        return len(self.first) + 2 + (0 if self.second is None else len(self.second) + 1)

    def joined(self, cls: int, sep: int) -> tuple[NDArray[np.int64], int]:
        """[CLS] A [SEP] B [SEP], and where segment B begins."""
        parts: list[Ids | list[int]] = [[cls], self.first, [sep]]
        if self.second is not None:
            parts += [self.second, [sep]]
        return np.concatenate(parts).astype(np.int64), len(self.first) + 2


def split_point(length: int, sentence_ends: NDArray[np.int64], rng: np.random.Generator) -> int | None:
    """Where A ends and B begins: a random sentence end, else a random place, None if there is nothing to split."""
    if len(sentence_ends):
        return int(rng.choice(sentence_ends))
    return int(rng.integers(1, length)) if length > 1 else None


def choose_positions(
    line: NDArray[np.int64], pieces: PieceTable, config: MaskedConfig, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The positions to predict: `mask_rate` of the pieces, at least one, never [CLS] or [SEP]; sorted."""
    candidates = np.flatnonzero((line != pieces.cls) & (line != pieces.sep))
    wanted = min(len(candidates), max(1, round(config.mask_rate * len(candidates))))
    if not config.whole_words:
        if not config.rare_first:
            return np.sort(rng.permutation(candidates)[:wanted])
        # The largest of log weight + Gumbel noise are a draw without replacement in proportion to the weights.
        keys = rng.gumbel(size=len(candidates)) - config.rare_first * pieces.log_frequency[line[candidates]]
        return np.sort(candidates[np.argpartition(-keys, wanted - 1)[:wanted]])
    starts = ~pieces.continues[line[candidates]]
    starts[:1] = True
    # A continuation right after [CLS] or [SEP] has lost its word's beginning: it counts as a word of its own.
    starts[1:] |= np.diff(candidates) > 1
    word = np.cumsum(starts) - 1
    return candidates[np.isin(word, words_that_fit(np.bincount(word), wanted, rng))]


def words_that_fit(sizes: NDArray[np.int64], wanted: int, rng: np.random.Generator) -> list[int]:
    """Random words with `wanted` pieces in all; a word that would exceed the number is skipped for a shorter one."""
    order = rng.permutation(len(sizes)).tolist()
    chosen: list[int] = []
    room = wanted
    for word in order:
        if sizes[word] <= room:
            chosen.append(word)
            room -= int(sizes[word])
        if not room:
            break
    return chosen or order[:1]


def corrupt(gold: NDArray[np.int64], pieces: PieceTable, rng: np.random.Generator) -> NDArray[np.int64]:
    """BERT's 80/10/10: [MASK], a random piece, or the piece itself."""
    draw = rng.random(len(gold))
    random_pieces = rng.integers(pieces.size, size=len(gold))
    return np.where(draw < 0.8, pieces.mask, np.where(draw < 0.9, random_pieces, gold))
