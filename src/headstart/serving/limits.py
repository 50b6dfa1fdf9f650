"""How much a server takes on: whatever is beyond is refused at once, in a sentence."""

from __future__ import annotations

from pydantic import Field

from headstart.config import Section


class Limits(Section):
    """Of one request, and of all at a time."""

    body: int = Field(default=1_000_000, ge=1)
    """Bytes of a request's body."""

    texts: int = Field(default=64, ge=1)
    """Texts of a request."""

    characters: int = Field(default=20_000, ge=1)
    """Of one text."""

    numbers: int = Field(default=1_000_000, ge=1)
    """Of the vectors in one answer: 20 MB of JSON."""

    waiting: int = Field(default=512, ge=1)
    """Texts that wait for an answer, of all requests; more are turned away with 503."""

    per_client: int = Field(default=64, ge=1)
    """Requests of one address at a time; more are turned away with 429."""

    seconds: float = Field(default=30.0, gt=0)
    """In which a request is answered, or turned away with 503."""

    body_seconds: float = Field(default=10.0, gt=0)
    """In which a request's body has to arrive."""
