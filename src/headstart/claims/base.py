"""What a claim is: a sentence of the field, the experiment that tests it here, and what that costs."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from headstart.claims.data import ClaimData, TaskFiles, TextFiles
from headstart.claims.encoders import Encoder, EncoderRole
from headstart.claims.layouts import TOGETHER, Role, where_to_put
from headstart.claims.results import Outcome
from headstart.claims.scales import Scale
from headstart.comparison.compare import CompareEvent
from headstart.progress import Notice, Progress


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that a claim is made with. Long work inside a claim goes to `runs`, where other claims find it."""

    data: ClaimData
    encoders: Mapping[EncoderRole, Encoder]
    scale: Scale
    out: Path
    cache: Path

    @property
    def runs(self) -> Path:
        """For comparisons and pretrainings, in folders whose names tell them apart (see `key_of`)."""
        return self.out / "runs"

    @property
    def seeds(self) -> list[int]:
        return list(range(self.scale.seeds))

    @property
    def text(self) -> TextFiles:
        """For claims that need it."""
        if self.data.text is None:
            raise ValueError("there is no text; a claim that uses it has it among its needs")
        return self.data.text

    def tasks(self, roles: Sequence[Role]) -> list[TaskFiles]:
        """Those of the labelled tasks that are there."""
        return [self.data.tasks[role] for role in roles if role in self.data.tasks]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a claim's work. minutes: about what it takes on two cores, unless it was done before."""

    title: str
    minutes: float


@dataclass(frozen=True, slots=True)
class PartBegan:
    """The event with which each part of the work begins."""

    title: str


ClaimEvent = PartBegan | Progress | Notice | CompareEvent


class Claim(ABC):
    """A claim of the field, and its experiment. A new one is a subclass in a file of its own and an entry in CLAIMS."""

    number: ClassVar[int]
    name: ClassVar[str]
    """A slug: `headstart reproduce NAME`."""
    title: ClassVar[str]
    """The sentence that the field says."""
    source: ClassVar[str]
    """Who said it."""
    needs: ClassVar[tuple[Role, ...]] = ()
    """Data without which there is nothing to do."""
    any_of: ClassVar[tuple[Role, ...]] = ()
    """Data of which one will do; the claim is made on each that is there."""
    uses: ClassVar[tuple[Role, ...]] = TOGETHER
    """All data that the claim looks at; others are not made ready for it."""
    encoders: ClassVar[tuple[EncoderRole, ...]] = ()
    """Encoders without which there is nothing to do."""

    def missing(self, setting: Setting) -> str | None:
        """Why the claim cannot be tested with this setting, in one sentence that says what would do."""
        for role in self.needs:
            if not setting.data.has(role):
                return f"{self.name} needs {where_to_put([role])}."
        if self.any_of and not any(setting.data.has(role) for role in self.any_of):
            return f"{self.name} needs {where_to_put(self.any_of)}."
        for encoder in self.encoders:
            if encoder not in setting.encoders:
                return f"{self.name} needs an encoder to play '{encoder}': give one with --{encoder} SRC."
        return None

    def key(self, setting: Setting) -> str:
        """Of everything that decides the outcome: a claim whose result has this key is not run again."""
        scale = asdict(setting.scale)
        del scale["six_tasks"]  # sizes of one claim, which has a key of its own
        return key_of(
            claim=self.name,
            scale=scale,
            data=setting.data.key,
            encoders={role: one.fingerprint for role, one in setting.encoders.items()},
        )

    @abstractmethod
    def plan(self, setting: Setting) -> Sequence[Part]:
        """What `run` will do, with its cost, from rates that were measured. Called only if nothing is missing."""

    @abstractmethod
    def run(self, setting: Setting) -> Generator[ClaimEvent, None, Outcome]:
        """Do it. What was done before in `setting.runs` is not done again. Yields PartBegan for each part."""


def key_of(**parts: object) -> str:
    """A short name for a piece of work, from everything that decides what comes of it. parts: plain values."""
    text = json.dumps({"headstart": version("headstart"), **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
