"""The pieces that a BERT predicts for each [MASK] of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstart.batches.rows import collate, text_row
from headstart.errors import ConfigError, DataError
from headstart.heads.plain import head_logits
from headstart.pretrained import Pretrained
from headstart.text.wordpiece import WordPieceTokenizer

MASK = "[MASK]"


@dataclass(frozen=True, slots=True)
class Guess:
    piece: str
    """Or a word."""
    probability: float


def best_guesses(chances: Tensor, units: Sequence[str], most: int) -> list[Guess]:
    """The most probable units, best first. chances: (V,)."""
    best = chances.topk(min(most, len(units)))
    return [Guess(units[i], p) for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)]


def fill(pretrained: Pretrained, text: str, most: int = 5) -> list[list[Guess]]:
    """For every [MASK] of the text, the most probable pieces, best first. most: how many, 1 or more."""
    encoder, tokenizer, name = pretrained.encoder, pretrained.tokenizer, pretrained.name or "This encoder"
    if most < 1:
        raise ConfigError(f"At least one piece must be asked for; got {most}.")
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise ConfigError(f"{name}: only a BERT fills in hidden pieces; this is {encoder.title}.")
    head = pretrained.heads.get("masked")
    if head is None:
        raise ConfigError(
            f"{name}: came without the masked-LM head that fills in hidden pieces, so it cannot predict what {MASK} "
            f"stands for. Its vectors and fine-tuning need no such head."
        )
    row = text_row(encoder, tokenizer, text)
    places = torch.from_numpy(row.ids == tokenizer.mask)
    if not places.any():
        raise DataError(f"The text has no {MASK}: put it where a piece is to be filled in. Got '{text}'.")
    pretrained.check_lengths([row])
    encoder.eval()
    batch = collate([row])
    with torch.no_grad():
        top = encoder.hidden_states(batch.ids, batch.mask, batch.segments)[-1]
        chances = head_logits("masked", head, encoder, top[:, places])[0].softmax(dim=-1)
    return [best_guesses(row, tokenizer.pieces, most) for row in chances]
