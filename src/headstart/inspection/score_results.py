"""What a language model makes of sentences: perplexity (ELMo), or pseudo-perplexity (BERT), which is something else.

A perplexity is exp(mean -log p(word | the words before it)), with the sentence's end among the words: the model's guess
in order. A pseudo-perplexity hides one piece at a time and predicts it from both sides (Salazar et al. 2020), which is
easier; the two are not comparable, nor are those of two BERTs with different pieces, unless given per word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from headstart.config import Table
from headstart.report.html_table import html_table

MOST_NATS = 700.0
"""Of which exp is still a float."""


def exp_mean(nats: float, n: int) -> float:
    return math.exp(min(nats / n, MOST_NATS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """What ELMo's language models lose on one sentence or several; `+` adds up. backward_nats: None without one."""

    title: ClassVar[str] = "perplexity per word, sentence ends included"
    headers: ClassVar[tuple[str, ...]] = ("forward", "backward", "words", "unknown")

    sentences: int
    words: int
    unknown: int
    """Words outside the vocabulary, of which all are one class to the model."""
    forward_nats: float
    backward_nats: float | None

    def __add__(self, other: Perplexity) -> Perplexity:
        both = (self.backward_nats, other.backward_nats)
        return Perplexity(
            sentences=self.sentences + other.sentences,
            words=self.words + other.words,
            unknown=self.unknown + other.unknown,
            forward_nats=self.forward_nats + other.forward_nats,
            backward_nats=None if None in both else sum(nats for nats in both if nats is not None),
        )

    @property
    def forward(self) -> float:
        return exp_mean(self.forward_nats, self.words + self.sentences)

    @property
    def backward(self) -> float | None:
        """Each word given those after it, with the sentence's beginning among the words."""
        return None if self.backward_nats is None else exp_mean(self.backward_nats, self.words + self.sentences)

    def cells(self) -> tuple[str, ...]:
        """Under `headers`."""
        backward = "-" if self.backward is None else f"{self.backward:,.2f}"
        return f"{self.forward:,.2f}", backward, f"{self.words:,}", f"{self.unknown:,}"

    @property
    def unknown_note(self) -> str:
        return f"{self.unknown:,} of {self.words:,} words are outside the vocabulary and count as one class."

    def as_table(self) -> Table:
        return {
            "forward_perplexity": self.forward,
            "backward_perplexity": self.backward,
            "words": self.words,
            "unknown_words": self.unknown,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoPerplexity:
    """What a BERT loses on each piece of one sentence or several, hidden by itself; `+` adds up."""

    title: ClassVar[str] = "pseudo-perplexity, each piece hidden once"
    headers: ClassVar[tuple[str, ...]] = ("per piece", "per word", "pieces", "words", "unknown")

    sentences: int
    words: int
    pieces: int
    unknown: int
    """Pieces [UNK]."""
    nats: float
    """The negative pseudo-log-likelihood."""

    def __add__(self, other: PseudoPerplexity) -> PseudoPerplexity:
        return PseudoPerplexity(
            sentences=self.sentences + other.sentences,
            words=self.words + other.words,
            pieces=self.pieces + other.pieces,
            unknown=self.unknown + other.unknown,
            nats=self.nats + other.nats,
        )

    @property
    def per_piece(self) -> float:
        return exp_mean(self.nats, self.pieces)

    @property
    def per_word(self) -> float:
        return exp_mean(self.nats, self.words)

    def cells(self) -> tuple[str, ...]:
        """Under `headers`."""
        counts = (f"{count:,}" for count in (self.pieces, self.words, self.unknown))
        return f"{self.per_piece:,.2f}", f"{self.per_word:,.2f}", *counts

    @property
    def unknown_note(self) -> str:
        return f"{self.unknown:,} of {self.pieces:,} pieces are [UNK]: characters outside the vocabulary."

    def as_table(self) -> Table:
        return {
            "pseudo_log_likelihood": -self.nats,
            "pseudo_perplexity_per_piece": self.per_piece,
            "pseudo_perplexity_per_word": self.per_word,
            "pieces": self.pieces,
            "words": self.words,
            "unknown_pieces": self.unknown,
        }


SentenceScore = Perplexity | PseudoPerplexity


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """One sentence. line: its number, from 1."""

    line: int
    text: str
    score: SentenceScore

    def as_table(self) -> Table:
        return {"line": self.line, **self.score.as_table()}


@dataclass(frozen=True, slots=True)
class Total:
    """All sentences of a text. left_out: longer than what the encoder reads; empty: without a word."""

    score: SentenceScore
    left_out: int
    empty: int

    def as_table(self) -> Table:
        return {
            "total": {
                "sentences": self.score.sentences,
                **self.score.as_table(),
                "left_out": self.left_out,
                "empty": self.empty,
            }
        }


@dataclass(frozen=True, slots=True)
class Scored:
    """Every sentence of a list, and all of them together."""

    lines: tuple[ScoredLine, ...]
    total: Total

    def as_table(self) -> Table:
        return {"lines": [line.as_table() for line in self.lines], **self.total.as_table()}

    def _repr_html_(self) -> str:
        rows = [(line.line, line.text, *line.score.cells()) for line in self.lines]
        score = self.total.score
        return html_table(["", score.title, *score.headers], [*rows, ("", "all", *score.cells())])
