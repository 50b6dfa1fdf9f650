"""The words that an ELMo expects after a text, or before it; and texts that it goes on with, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.batches.order import seed_of
from headstart.batches.rows import TextRow, text_row
from headstart.config import Table
from headstart.encoders.stateful import LstmState
from headstart.errors import ConfigError, DataError
from headstart.inspection.fill import Guess, best_guesses
from headstart.inspection.language_models import NextWordLM, batch_for
from headstart.pretrained import Pretrained
from headstart.report.html_table import html_table
from headstart.text.vocabulary import END_ID, START_ID, UNKNOWN_ID


@dataclass(frozen=True, slots=True)
class NextWords:
    """The most probable words after a text, or before it, best first."""

    text: str
    backward: bool
    guesses: tuple[Guess, ...]

    def as_table(self) -> Table:
        return {
            "text": self.text,
            "backward": self.backward,
            "words": [guess.as_table() for guess in self.guesses],
        }

    def _repr_html_(self) -> str:
        title = "word before" if self.backward else "next word"
        return html_table(
            [title, "probability"], [(one.piece, f"{100 * one.probability:.1f} %") for one in self.guesses]
        )


@dataclass(frozen=True, slots=True)
class Generated:
    """How a text goes on, word by word, or what went before. words: in the order of generation, each as it was chosen.

    ended: the model ended the sentence, or began it, before the number of words that was asked for.
    """

    given: str
    backward: bool
    words: tuple[Guess, ...]
    ended: bool

    @property
    def text(self) -> str:
        """The whole text, with spaces between all words that were generated."""
        new = [guess.piece for guess in self.words]
        return " ".join([*new[::-1], self.given] if self.backward else [self.given, *new])

    def as_table(self) -> Table:
        return {
            "given": self.given,
            "backward": self.backward,
            "words": [guess.as_table() for guess in self.words],
            "ended": self.ended,
            "text": self.text,
        }

    def _repr_html_(self) -> str:
        return guess_table("word before" if self.backward else "word", self.words)


def guess_table(title: str, guesses: Sequence[Guess]) -> str:
    return html_table([title, "probability"], [(one.piece, f"{100 * one.probability:.1f} %") for one in guesses])


def next_words(
    pretrained: Pretrained, text: str | Sequence[str], most: int = 5, *, backward: bool = False
) -> list[Guess]:
    """The most probable next words, best first; </S> is the end of the sentence.

    text: a string, or its words. backward: the word before the text instead, <S> for the sentence's beginning. most:
    how many, 1 or more.
    """
    if most < 1:
        raise ConfigError(f"At least one word must be asked for; got {most}.")
    model = NextWordLM.of(pretrained, backward=backward)
    row = filled_row(model, text)
    # The forward LSTM has read the text at its last word, the backward one at its first.
    place = row.word_starts[0] if backward else row.word_starts[-1]
    batch = batch_for(model.encoder, [row])
    with torch.no_grad():
        (top,) = model.encoder.hidden_states(batch.ids, batch.mask, layers=[-1])
        chances = model.logits(top[0, place, model.half(backward=backward)]).softmax(dim=-1)
    return best_guesses(chances, model.words, most)


def expect(pretrained: Pretrained, text: str, most: int = 5, *, backward: bool = False) -> NextWords:
    """`next_words` with what was asked."""
    return NextWords(text, backward, tuple(next_words(pretrained, text, most, backward=backward)))


def filled_row(model: NextWordLM, text: str | Sequence[str]) -> TextRow:
    row = text_row(model.encoder, model.tokenizer, text)
    if not len(row.word_starts):
        raise DataError(f"The text has no word. Got '{text}'.")
    return row


def generate(
    pretrained: Pretrained,
    text: str,
    words: int = 20,
    *,
    backward: bool = False,
    temperature: float | None = None,
    seed: int = 0,
) -> Generated:
    """Go on with a text, or with what went before it, until the sentence ends or so many words are there.

    temperature: None takes the most probable word each time; a number draws from the softmax of logits / temperature,
    by the seed. <UNK> is never generated. The probabilities that come along are those of the model itself.
    """
    if words < 1:
        raise ConfigError(f"--generate is a number of words, one or more; got {words}.")
    if temperature is not None and not 0 < temperature < float("inf"):
        raise ConfigError(f"--temperature is a number above 0; got {temperature}.")
    model = NextWordLM.of(pretrained, backward=backward)
    reader = Reader(model, filled_row(model, text), backward=backward)
    rng = np.random.default_rng(seed_of(seed, "generate", text))
    mark, other = (START_ID, END_ID) if backward else (END_ID, START_ID)
    found: list[Guess] = []
    while len(found) < words:
        logits = reader.logits()
        probabilities = logits.softmax(dim=-1)
        logits[[UNKNOWN_ID, other]] = -torch.inf
        chosen = int(logits.argmax()) if temperature is None else drawn(logits / temperature, rng)
        if chosen == mark:
            return Generated(text, backward, tuple(found), ended=True)
        found.append(Guess(model.words[chosen], float(probabilities[chosen])))
        reader.read(chosen)
    return Generated(text, backward, tuple(found), ended=False)


def drawn(logits: Tensor, rng: np.random.Generator) -> int:
    bounds = logits.softmax(dim=-1).cumsum(dim=-1).numpy()
    # The last bound may be rounded below 1.
    return int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))


class Reader:
    """One direction of an ELMo that has read a text, and reads on word by word from the state it is in."""

    def __init__(self, model: NextWordLM, row: TextRow, *, backward: bool) -> None:
        self.model, self.half, self.place = model, model.half(backward=backward), 0 if backward else -1
        self.carried: LstmState | None = None
        # The mark on the other side of the text is what is to be predicted.
        self._read(row.ids[1:] if backward else row.ids[:-1])

    def read(self, word: int) -> None:
        ids = self.model.encoder.tokens.ids_of([self.model.words[word]], np.array([word]))
        self._read(ids)

    def logits(self) -> Tensor:
        """Of the word that follows in this direction: (V,)."""
        with torch.no_grad():
            return self.model.logits(self.state).double().cpu()

    def _read(self, ids: NDArray[Any]) -> None:
        batch = batch_for(self.model.encoder, [TextRow(ids, np.zeros(1, np.int64), False)])
        states, self.carried = self.model.encoder.infer_from(self.carried, batch.ids, batch.mask)
        self.state: Tensor = states[-1][0, self.place, self.half]
