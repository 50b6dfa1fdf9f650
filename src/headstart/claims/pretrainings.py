"""The short pretrainings of claims: each made once, resumed where it was stopped, and kept under its key."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.atomic import write_text
from headstart.claims.base import ClaimEvent, Setting, key_of
from headstart.claims.encoders import Encoder, open_encoder
from headstart.config import settings_table
from headstart.pretraining.events import Finished
from headstart.pretraining.pretrain import pretrain
from headstart.text.documents import file_digest

ONE_PER_LINE = {"text.one_per_line": True}


@dataclass(frozen=True, slots=True)
class Pretraining:
    """One run. encoders: what it starts from, by the setting that takes it: vectors, or start."""

    name: str
    kind: str
    text: Path
    valid: Path
    size: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int | None = None
    """None: one pass over the text."""
    encoders: Mapping[str, Encoder] = field(default_factory=dict)
    words: Encoder | None = None
    """A run whose words make the vocabulary."""


def pretrained_once(setting: Setting, wanted: Pretraining) -> Generator[ClaimEvent, None, Encoder]:
    """The encoder of a run that is made now, or was made before."""
    key = key_of(
        kind=wanted.kind,
        size=wanted.size,
        text=[file_digest(wanted.text), file_digest(wanted.valid)],
        settings=dict(wanted.settings),
        steps=wanted.steps,
        encoders={name: encoder.fingerprint for name, encoder in wanted.encoders.items()},
        words=wanted.words and wanted.words.fingerprint,
    )
    out = setting.runs / "pretrained" / f"{wanted.name}-{key}"
    note = out.with_name(f"{out.name}.json")
    if not note.exists():
        paths = {name: encoder.path for name, encoder in wanted.encoders.items()}
        words = {"tokenizer.path": wanted.words.path} if wanted.words is not None else {}
        events = pretrain(
            wanted.kind,
            wanted.text,
            valid=wanted.valid,
            out=out,
            size=wanted.size,
            config=settings_table({**wanted.settings, **paths, **words}),
            steps=wanted.steps,
            epochs=1.0 if wanted.steps is None else None,
            resume=True,
            cache=setting.cache,
        )
        with closing(events):
            for event in events:
                yield event
        if not isinstance(event, Finished):
            raise RuntimeError(f"the pretraining of {wanted.name} ended without a result")
        write_text(note, json.dumps({"seconds": event.elapsed, "scores": event.scores}))
    return (yield from open_encoder(str(out), setting.cache))


def write_documents(path: Path, sentences: Sequence[str], words: int, together: int = 8) -> None:
    """Sentences, a line each, in documents of some, with a blank line between them; about so many words at most."""
    kept: list[str] = []
    for sentence in sentences:
        if words <= 0:
            break
        kept.append(sentence)
        words -= sentence.count(" ") + 1
    groups = [kept[first : first + together] for first in range(0, len(kept), together)]
    write_text(path, "\n\n".join("\n".join(group) for group in groups) + "\n")
