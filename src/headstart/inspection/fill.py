"""The pieces that a BERT predicts for each [MASK] of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from headstart.batches.rows import TextRow, text_row
from headstart.errors import ConfigError, DataError
from headstart.inspection.language_models import MASK, MaskedLM
from headstart.pretrained import Pretrained


@dataclass(frozen=True, slots=True)
class Guess:
    piece: str
    """Or a word."""
    probability: float

    def as_table(self) -> dict[str, object]:
        return {"word": self.piece, "probability": self.probability}


def best_guesses(chances: Tensor, units: Sequence[str], most: int) -> list[Guess]:
    """The most probable units, best first. chances: (V,)."""
    best = chances.topk(min(most, len(units)))
    return [Guess(units[i], p) for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)]


def fill(pretrained: Pretrained, text: str, most: int = 5) -> list[list[Guess]]:
    """For every [MASK] of the text, the most probable pieces, best first. most: how many, 1 or more."""
    model = MaskedLM.of(pretrained)
    row = row_of_masks(model, pretrained, text, most)
    pieces = model.tokenizer.pieces
    return [best_guesses(chances, pieces, most) for chances in model.log_probabilities([row]).exp()]


def row_of_masks(model: MaskedLM, pretrained: Pretrained, text: str, most: int) -> TextRow:
    """A text as a row whose words are its [MASK]s. most: how many answers are asked for."""
    if most < 1:
        raise ConfigError(f"At least one answer must be asked for; got {most}.")
    row = text_row(model.encoder, model.tokenizer, text)
    places = np.flatnonzero(row.ids == model.tokenizer.mask)
    if not len(places):
        raise DataError(f"The text has no {MASK}: put it where a word is to be filled in. Got '{text}'.")
    pretrained.check_lengths([row])
    return replace(row, word_starts=places)
