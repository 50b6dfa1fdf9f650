"""The encoders. A new one is a file in this folder and an entry here."""

from __future__ import annotations

import torch

from headstart.config import Table, pick
from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert
from headstart.encoders.elmo import Elmo
from headstart.encoders.static import Static

ENCODERS: dict[str, type[Encoder]] = {encoder.kind: encoder for encoder in (Static, Elmo, Bert)}
"""By kind, in the order of their years."""


def build_encoder(kind: str, settings: Table, vocabulary_size: int) -> Encoder:
    """A randomly initialised encoder, whose weights are loaded next. torch's global generator stays as it was."""
    encoder = pick(ENCODERS, kind, "encoder")
    with torch.random.fork_rng([]):
        return encoder.build(settings, vocabulary_size)
