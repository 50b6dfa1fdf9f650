"""The plain heads of a BERT: one linear layer on the sequence's vector, or on every piece's.

A BERT's heads have these names everywhere: masked (hidden pieces), next (next sentence), classify (labels of a text or
pair), tag (labels of pieces), span (where an answer begins and ends).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from headstart.heads.language_model import MaskedLMHead

ON_SEQUENCE, ON_PIECES = ("next", "classify"), ("tag", "span")


def head_logits(name: str, head: nn.Module, encoder: Any, top: Tensor) -> Tensor:
    """Logits of one head from the top layer. top: (B, T, D) -> (B, C) for a sequence head, (B, T, C) for the others."""
    if isinstance(head, MaskedLMHead):
        return head.logits(top, encoder.words.weight)
    logits: Tensor = head(encoder.pooled(top) if name in ON_SEQUENCE else top)
    return logits
