"""The words that an ELMo expects after a text, or before it."""

from __future__ import annotations

import torch

from headstart.batches.rows import collate, text_row
from headstart.encoders.elmo import Elmo
from headstart.encoders.word_table import WordTable
from headstart.errors import ConfigError, DataError
from headstart.heads.language_model import NextWordHead
from headstart.inspection.fill import Guess, best_guesses
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer


def next_words(pretrained: Pretrained, text: str, most: int = 5, *, backward: bool = False) -> list[Guess]:
    """The most probable next words, best first; </S> is the end of the sentence.

    backward: the word before the text instead, <S> for the sentence's beginning. most: how many, 1 or more.
    """
    encoder, tokenizer, name = pretrained.encoder, pretrained.tokenizer, pretrained.name or "This encoder"
    if most < 1:
        raise ConfigError(f"At least one word must be asked for; got {most}.")
    if not isinstance(encoder, Elmo) or not isinstance(tokenizer, WordTokenizer):
        raise ConfigError(f"{name}: only an ELMo predicts the next word; this is {encoder.title}.")
    if backward and encoder.config.directions != "both":
        raise ConfigError(f"{name}: reads forward only, so it cannot predict the word before a text.")
    head = pretrained.heads.get("head")
    if not isinstance(head, NextWordHead):
        raise ConfigError(
            f"{name}: came without the softmax that predicts the next word. Its vectors and fine-tuning need none."
        )
    words = tokenizer.vocabulary.words
    if len(words) != len(head.bias):
        raise ConfigError(
            f"{name}: its softmax has {len(head.bias):,} words and its vocabulary {len(words):,}, so it is not known "
            "which word is which. Import it with its vocabulary file."
        )
    row = text_row(encoder, tokenizer, text)
    if not len(row.word_starts):
        raise DataError(f"The text has no word. Got '{text}'.")
    width = encoder.config.projection
    # The forward LSTM has read the text at its last word, the backward one at its first.
    place, half = (row.word_starts[0], slice(width, None)) if backward else (row.word_starts[-1], slice(width))
    table = encoder.tokens.weight if isinstance(encoder.tokens, WordTable) else None
    batch = collate([row])
    encoder.eval()
    with torch.no_grad():
        (top,) = encoder.hidden_states(batch.ids, batch.mask, layers=[-1])
        chances = head.logits(top[0, place, half], table).softmax(dim=-1)
    return best_guesses(chances, words, most)
