"""The heads that come along with a pretrained encoder, by the names they have in every run.

head: ELMo's softmax over the next word. The others are BERT's: masked (hidden pieces), next (next sentence), classify
(labels of a text or pair), tag (labels of pieces), span (first and last piece of an answer).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from torch import Tensor, nn

from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.errors import CheckpointError
from headstart.heads.language_model import MaskedLMHead, NextWordHead

ON_SEQUENCE, ON_PIECES = ("next", "classify"), ("tag", "span")
"""Linear heads on the pooled vector of a sequence, and on the vector of every piece."""

EncoderT = TypeVar("EncoderT", bound=Encoder)


def next_word_head(encoder: Encoder, weights: Mapping[str, Tensor]) -> nn.Module:
    width = only_of(Elmo, encoder, "head").config.projection
    return NextWordHead(width, len(weights["bias"]), tied="weight" not in weights)


def masked_head(encoder: Encoder, weights: Mapping[str, Tensor]) -> nn.Module:
    config = only_of(Bert, encoder, "masked").config
    return MaskedLMHead(config.width, len(weights["bias"]), config.norm_eps, untied="decoder" in weights)


def linear_head(encoder: Encoder, weights: Mapping[str, Tensor]) -> nn.Module:
    return nn.Linear(encoder.shape[1], len(weights["bias"]))


HEADS: dict[str, Callable[[Encoder, Mapping[str, Tensor]], nn.Module]] = {
    "head": next_word_head,
    "masked": masked_head,
    **dict.fromkeys((*ON_SEQUENCE, *ON_PIECES), linear_head),
}
"""Each builds an untrained head in the shape of its weights."""


def only_of(wanted: type[EncoderT], encoder: Encoder, name: str) -> EncoderT:
    """The encoder, if it is one that can have this head."""
    if not isinstance(encoder, wanted):
        raise CheckpointError(f"The head '{name}' is for {wanted.title}; this encoder is {encoder.title}.")
    return encoder


def head_logits(name: str, head: nn.Module, encoder: Encoder, top: Tensor) -> Tensor:
    """Logits of one head from the top layer. top: (B, T, D) -> (B, C) for a sequence head, (B, T, C) for the others."""
    if isinstance(head, MaskedLMHead):
        return head.logits(top, only_of(Bert, encoder, name).words.weight)
    logits: Tensor = head(encoder.pooled(top) if name in ON_SEQUENCE else top)
    return logits
