"""The language models that come along with an encoder: BERT's of hidden pieces, ELMo's of the next word.

Letters: M predictions, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.batches.rows import TextBatch, TextRow, collate
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.encoders.word_table import WordTable
from headstart.errors import ConfigError
from headstart.heads.language_model import MaskedLMHead, NextWordHead
from headstart.heads.softmax import CHUNK
from headstart.inspection.abilities import one_that_can
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.wordpiece import WordPieceTokenizer

MASK = "[MASK]"


@dataclass(frozen=True, slots=True)
class MaskedLM:
    """A BERT with the head that predicts hidden pieces."""

    encoder: Bert
    tokenizer: WordPieceTokenizer
    head: MaskedLMHead

    @classmethod
    def of(cls, pretrained: Pretrained) -> MaskedLM:
        """A ConfigError names a model that can, if this one cannot."""
        encoder, tokenizer, name = pretrained.encoder, pretrained.tokenizer, pretrained.name or "This encoder"
        if not isinstance(encoder, Bert) or not isinstance(tokenizer, WordPieceTokenizer):
            raise ConfigError(
                f"{name}: only a BERT fills in hidden pieces; this is {encoder.title}. {one_that_can('masks')}"
            )
        head = pretrained.heads.get("masked")
        if not isinstance(head, MaskedLMHead):
            raise ConfigError(
                f"{name}: came without the masked-LM head that fills in hidden pieces, so it cannot predict what "
                f"{MASK} stands for. Its vectors and fine-tuning need no such head. {one_that_can('masks')}"
            )
        return cls(encoder, tokenizer, head)

    def states(self, rows: Sequence[TextRow]) -> Tensor:
        """The top layer at the words of some rows, row by row: (M, D)."""
        batch = batch_for(self.encoder, rows)
        with torch.no_grad():
            return self.encoder.infer(batch.ids, batch.mask, None, [-1], batch.at_words).at(batch.word_starts)[0]

    def logits(self, h: Tensor) -> Tensor:
        """(M, D) -> (M, V)."""
        return self.head.logits(h, self.encoder.words.weight)

    def log_probabilities(self, rows: Sequence[TextRow]) -> Tensor:
        """Of every piece at the words of some rows, row by row: (M, V)."""
        h = self.states(rows)
        with torch.no_grad():
            return self.logits(h).log_softmax(dim=-1).cpu()


@dataclass(frozen=True, slots=True)
class NextWordLM:
    """An ELMo with its softmax: each forward state predicts the next word, each backward state the word before."""

    encoder: Elmo
    tokenizer: WordTokenizer
    head: NextWordHead

    @classmethod
    def of(cls, pretrained: Pretrained, *, backward: bool = False) -> NextWordLM:
        """backward: it has to predict the word before. A ConfigError names a model that can, if this one cannot."""
        encoder, tokenizer, name = pretrained.encoder, pretrained.tokenizer, pretrained.name or "This encoder"
        if not isinstance(encoder, Elmo) or not isinstance(tokenizer, WordTokenizer):
            raise ConfigError(
                f"{name}: only an ELMo predicts the next word; this is {encoder.title}. {one_that_can('next words')}"
            )
        if backward and encoder.config.directions != "both":
            raise ConfigError(
                f"{name}: reads forward only, so it cannot predict the word before a text. {one_that_can('next words')}"
            )
        head = pretrained.heads.get("head")
        if not isinstance(head, NextWordHead):
            raise ConfigError(
                f"{name}: came without the softmax that predicts the next word. Its vectors and fine-tuning need none. "
                f"{one_that_can('next words')}"
            )
        if len(tokenizer) != len(head.bias):
            raise ConfigError(
                f"{name}: its softmax has {len(head.bias):,} words and its vocabulary {len(tokenizer):,}, so it is not "
                "known which word is which. Import it with its vocabulary file."
            )
        return cls(encoder, tokenizer, head)

    @property
    def words(self) -> tuple[str, ...]:
        return self.tokenizer.vocabulary.words

    def half(self, *, backward: bool) -> slice:
        """Where a state holds its direction."""
        width = self.encoder.config.projection
        return slice(width, None) if backward else slice(width)

    def logits(self, h: Tensor) -> Tensor:
        """h: (M, D) of one direction -> (M, V)."""
        table = self.encoder.tokens.weight if isinstance(self.encoder.tokens, WordTable) else None
        return self.head.logits(h, table)


def batch_for(encoder: Encoder, rows: Sequence[TextRow]) -> TextBatch:
    """Rows as a batch where the encoder is, which is set to inference."""
    return collate(rows).to(next(encoder.eval().parameters()).device)


def nats_of(logits: Callable[[Tensor], Tensor], h: Tensor, gold: Tensor) -> Tensor:
    """-log p of each gold word, the logits of `CHUNK` of them in memory at a time. h: (M, D); gold: (M,) -> (M,)."""
    with torch.no_grad():
        parts = [
            F.cross_entropy(logits(h[start : start + CHUNK]), gold[start : start + CHUNK], reduction="none")
            for start in range(0, len(h), CHUNK)
        ]
    return torch.cat(parts).double().cpu() if parts else torch.zeros(0, dtype=torch.float64)
