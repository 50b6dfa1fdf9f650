"""The encoders that claims are made of, opened once to see that they can be."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headstart.errors import ConfigError
from headstart.progress import Progress
from headstart.transfer.features import encoder_fingerprint
from headstart.weights.sources import local, open_source

EncoderRole = Literal["static", "elmo", "bert", "published"]
ENCODERS: dict[EncoderRole, str] = {
    "static": "words-mini",
    "elmo": "elmo-mini",
    "bert": "bert-mini",
    "published": "minilm",
}
"""The part that an encoder plays in the claims -> the source that plays it unless another is given."""

KINDS: dict[EncoderRole, str] = {"static": "static", "elmo": "elmo", "bert": "bert", "published": "bert"}
"""Whoever plays a part is of this kind."""
LANGUAGE_MODELS = {"elmo": "head", "bert": "masked"}
"""By kind, the head without which an encoder is no language model."""
SHAPES: dict[EncoderRole, tuple[int, int]] = {
    "static": (1, 128),
    "elmo": (3, 256),
    "bert": (4, 192),
    "published": (7, 384),
}
"""Of the usual encoders, to tell costs from."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """source: as the user named it; path: where it is on this machine, which `headstart.load` opens."""

    source: str
    path: str
    kind: str
    shape: tuple[int, int]
    """Layers, R_0 included, and width."""
    fingerprint: str
    heads: tuple[str, ...] = ()
    """That came along, by the names of `headstart.heads.plain.HEADS`."""

    @property
    def folder(self) -> Path:
        """Of one that is a run."""
        return Path(self.path)

    @property
    def is_language_model(self) -> bool:
        return LANGUAGE_MODELS.get(self.kind) in self.heads

    @property
    def layers(self) -> int:
        return self.shape[0]

    @property
    def name(self) -> str:
        """Its folder's, or that of the catalogue."""
        return Path(self.path.split(",")[-1]).resolve().name


def open_role(role: EncoderRole, source: str, cache: Path) -> Generator[Progress, None, Encoder]:
    encoder = yield from open_encoder(source, cache)
    if encoder.kind != KINDS[role]:
        raise ConfigError(
            f"--{role}: {source} holds {encoder.kind}; wanted an encoder of kind {KINDS[role]}, or 'off'."
        )
    return encoder


def open_encoder(source: str, cache: Path) -> Generator[Progress, None, Encoder]:
    """Download it if need be."""
    paths = yield from local(source, cache)
    path = ",".join(map(str, paths))
    pretrained = yield from open_source(path, cache=cache)
    encoder = pretrained.encoder
    return Encoder(source, path, pretrained.kind, encoder.shape, encoder_fingerprint(encoder), tuple(pretrained.heads))
