"""What a pretraining objective is: one class with its settings, their defaults, its tokenizer and its learner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import Field, model_validator
from torch import Tensor

from headstart.config import Section, Table
from headstart.pretraining.learner import Learner
from headstart.pretraining.loop import TrainingConfig
from headstart.progress import Progress
from headstart.text.dividing import Machines
from headstart.text.documents import TextConfig
from headstart.text.shards import Shards
from headstart.text.tokenise import Corpora
from headstart.text.tokenizer import Tokenizer
from headstart.training.ranks import Alone, Ranks


class RunConfig(Section):
    """The settings that every run has."""

    kind: str
    size: str | None = None
    """The published size that filled in [encoder]."""
    seed: int = 0
    """Decides every random draw of the run."""
    start: str | None = None
    """An encoder of the same kind whose weights and tokenizer are gone on with: a run, or whatever has its heads."""
    text: TextConfig = TextConfig()
    training: TrainingConfig = TrainingConfig()


class VocabularyConfig(Section):
    """How many units a tokenizer has."""

    size: int | None = Field(default=None, ge=1)
    """Exactly so many: a text that has fewer is refused."""
    most: int | None = Field(default=None, ge=1)
    """At most so many: as many as the text supports, for a recipe that is to run on any text."""

    @model_validator(mode="after")
    def one_size(self) -> Self:
        if self.size is not None and self.most is not None:
            raise ValueError(f"size and most exclude each other; got {self.size:,} and {self.most:,}")
        return self


@dataclass(frozen=True, slots=True)
class Workplace:
    """The folder for intermediate files, how many processes or threads may read text, and who shares the work."""

    cache: Path
    workers: int
    ranks: Ranks = field(default_factory=Alone)
    machines: Machines | None = None
    """Those that work on the text with this one."""


ConfigT = TypeVar("ConfigT", bound=RunConfig)
TokenizerT = TypeVar("TokenizerT", bound=Tokenizer)


class Pretraining(ABC, Generic[ConfigT, TokenizerT]):
    """One way to pretrain. The long methods are generators: they yield progress and return their result."""

    name: str
    """The objective's key in OBJECTIVES."""
    divides: bool = True
    """Whether several processes can share the training."""
    config: type[ConfigT]

    @abstractmethod
    def defaults(self, size: str | None, given: Table) -> Table:
        """The settings of `size` (--size), for everything that the user did not give."""

    @abstractmethod
    def tokenizer(
        self, config: ConfigT, paths: list[Path], place: Workplace
    ) -> Generator[Progress, None, TokenizerT]: ...

    @abstractmethod
    def learner(
        self, config: ConfigT, tokenizer: TokenizerT, corpora: Corpora, place: Workplace
    ) -> Generator[Progress, None, Learner]: ...

    @abstractmethod
    def training_bytes(self, config: ConfigT, vocabulary_size: int) -> int:
        """The least memory that the parameters take in training, known before any of it is allocated."""

    def longest_sentence(self, config: ConfigT) -> int | None:
        """Words after which a sentence is cut, None for no limit."""
        return None

    def wrote(self, table: Table) -> bool:
        """Whether a run's config.toml, without its [data], is of this objective."""
        return bool(table.get("kind") == self.name)

    def defaults_from(self, heads: Collection[str]) -> Table:
        """The settings for going on from an encoder that came with these heads, where no run recorded better ones."""
        return {}

    def untrained_heads(self, config: ConfigT) -> Collection[str]:
        """Heads that these settings do not train, so that an encoder to go on from may come without them."""
        return ()

    def measurable(self, config: ConfigT, held_out: Shards) -> ConfigT:
        """The settings for a learner that is only evaluated, on `held_out`, with weights from elsewhere."""
        return config

    def without_start(self, config: ConfigT) -> ConfigT:
        """The settings for a learner whose weights come from elsewhere."""
        return config

    def with_encoder(self, weights: Mapping[str, Tensor], encoder: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A run's weights with the encoder's replaced by those of `encoder`, which has the same names and shapes."""
        return {**weights, **{f"encoder.{name}": tensor for name, tensor in encoder.items()}}
