"""Words for all [MASK]s of a text together, each of one piece or several, by beam search.

The masks are filled from left to right, so that every answer is scored by the same chain of predictions: the sum over
its pieces of log p(piece | the text with all masks before it filled and those after it still hidden). A word of n
pieces is tried with n masks in its place, which only pieces that continue a word may fill after the first. Answers of
more pieces have more factors; they are ranked by the mean log-probability of a piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.rows import TextRow
from headstart.config import Table
from headstart.errors import ConfigError, DataError
from headstart.inspection.fill import Guess, best_guesses, row_of_masks
from headstart.inspection.language_models import MASK, MaskedLM
from headstart.pretrained import Pretrained
from headstart.report.html_table import html_table
from headstart.text.wordpiece import PREFIX, SPECIALS, WordPieceTokenizer

BEAM = 20


@dataclass(frozen=True, slots=True)
class Filling:
    """A word for every mask, and how probable its pieces are together."""

    words: tuple[str, ...]
    pieces: int
    log_probability: float

    @property
    def per_piece(self) -> float:
        """The mean log-probability of a piece, by which answers are ranked."""
        return self.log_probability / self.pieces

    def as_table(self) -> Table:
        return {
            "words": list(self.words),
            "pieces": self.pieces,
            "log_probability": self.log_probability,
            "log_probability_per_piece": self.per_piece,
        }


@dataclass(frozen=True, slots=True)
class Filled:
    """What stands for the masks of a text. alone: the best words of one piece for each mask, whatever the others are.

    together: the best answers for all masks, best first.
    """

    text: str
    alone: tuple[tuple[Guess, ...], ...]
    together: tuple[Filling, ...]

    def as_table(self) -> Table:
        return {
            "text": self.text,
            "masks": [[guess.as_table() for guess in guesses] for guesses in self.alone],
            "together": [filling.as_table() for filling in self.together],
        }

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The table that people see: its header, and a row for each answer."""
        rows = [
            [", ".join(one.words), f"{one.log_probability:.2f}", f"{one.per_piece:.2f}", str(one.pieces)]
            for one in self.together
        ]
        return ["together", "log p", "per piece", "pieces"], rows

    def _repr_html_(self) -> str:
        return html_table(*self.rows())

    def with_words(self, filling: Filling) -> str:
        """The text with the words in place of its masks."""
        parts = self.text.split(MASK)
        return parts[0] + "".join(word + part for word, part in zip(filling.words, parts[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A row of ids in which some masks are filled. word: the pieces so far of the word under way."""

    ids: NDArray[np.int64]
    words: tuple[str, ...] = ()
    word: tuple[int, ...] = ()
    pieces: int = 0
    log_probability: float = 0.0

    def with_masks(self, mask: int, n: int) -> Hypothesis:
        """With n masks in place of the first."""
        place = self.next_mask(mask)
        return replace(self, ids=np.concatenate([self.ids[:place], [mask] * n, self.ids[place + 1 :]]))

    def next_mask(self, mask: int) -> int:
        return int(np.argmax(self.ids == mask))

    def with_piece(self, mask: int, piece: int, log_probability: float) -> Hypothesis:
        ids = self.ids.copy()
        ids[self.next_mask(mask)] = piece
        total = self.log_probability + log_probability
        return replace(self, ids=ids, word=(*self.word, piece), pieces=self.pieces + 1, log_probability=total)

    def with_word(self, word: str) -> Hypothesis:
        """The word under way is complete."""
        return replace(self, words=(*self.words, word), word=())

    @property
    def per_piece(self) -> float:
        return self.log_probability / self.pieces


@dataclass(frozen=True, slots=True)
class Pieces:
    """Which pieces may begin a word and which may continue one. begin, go_on: (V,)."""

    tokenizer: WordPieceTokenizer
    spelling: Sequence[str]
    begin: Tensor
    go_on: Tensor

    @classmethod
    def of(cls, tokenizer: WordPieceTokenizer) -> Self:
        spelling = tokenizer.pieces
        go_on = torch.tensor([piece.startswith(PREFIX) for piece in spelling])
        special = torch.tensor([piece in SPECIALS for piece in spelling])
        return cls(tokenizer, spelling, ~go_on & ~special, go_on)

    def word(self, ids: Sequence[int]) -> str | None:
        """The word that these pieces spell; None where the tokenizer itself would spell it by others.

        The encoder has never seen such pieces side by side, and one word would be found twice.
        """
        text = "".join(self.spelling[id].removeprefix(PREFIX) for id in ids)
        return text if self.tokenizer.encode(text).ids.tolist() == list(ids) else None


def fill_words(pretrained: Pretrained, text: str, most: int = 5, *, pieces: int = 1, beam: int = BEAM) -> Filled:
    """Words for the masks of a text, for each alone and for all together.

    most: answers, 1 or more. pieces: the longest word in pieces. beam: hypotheses that are kept from piece to piece;
    more find answers whose first pieces are improbable.
    """
    for title, count in (("--pieces", pieces), ("The beam", beam)):
        if count < 1:
            raise ConfigError(f"{title} is a count of one or more; got {count}.")
    model = MaskedLM.of(pretrained)
    row = row_of_masks(model, pretrained, text, most)
    masks = len(row.word_starts)
    check_room(model, len(row.ids) + masks * (pieces - 1), pieces)
    known = Pieces.of(model.tokenizer)
    chances = model.log_probabilities([row]).exp() * known.begin
    hypotheses = [Hypothesis(row.ids)]
    for _ in range(masks):
        grown = [one for n in range(1, pieces + 1) for one in with_next_word(model, known, hypotheses, n, beam)]
        hypotheses = best(grown, beam)
    return Filled(
        text,
        tuple(tuple(one for one in best_guesses(row, known.spelling, most) if one.probability) for row in chances),
        tuple(Filling(one.words, one.pieces, one.log_probability) for one in hypotheses[:most]),
    )


def check_room(model: MaskedLM, longest: int, pieces: int) -> None:
    room = model.encoder.longest
    if longest > room:
        raise DataError(
            f"With {pieces} pieces for every {MASK} the text has {longest} pieces with its marks, and this "
            f"{model.encoder.title} reads {room}. Shorten the text, or allow fewer with --pieces."
        )


def with_next_word(
    model: MaskedLM, known: Pieces, hypotheses: Sequence[Hypothesis], n: int, beam: int
) -> list[Hypothesis]:
    """The hypotheses with a word of n pieces in place of their first mask."""
    mask = model.tokenizer.mask
    grown = [one.with_masks(mask, n) for one in hypotheses]
    for number in range(n):
        rows = [TextRow(one.ids, np.array([one.next_mask(mask)]), False) for one in grown]
        allowed = known.go_on if number else known.begin
        found = model.log_probabilities(rows).masked_fill(~allowed, -torch.inf).topk(min(beam, len(allowed)))
        grown = best(
            (
                one.with_piece(mask, piece, log_probability)
                for one, values, ids in zip(grown, found.values.tolist(), found.indices.tolist(), strict=True)
                for log_probability, piece in zip(values, ids, strict=True)
                if log_probability > -torch.inf
            ),
            beam,
        )
    words = [(one, known.word(one.word)) for one in grown]
    return [one.with_word(word) for one, word in words if word is not None]


def best(hypotheses: Iterable[Hypothesis], beam: int) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda one: -one.per_piece)[:beam]
