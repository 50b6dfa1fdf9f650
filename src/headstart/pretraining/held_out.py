"""A finished run's own objective on held-out text, measured with its own weights or with others in their place."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from headstart.config import Table, cache_home, resolve
from headstart.encoders.registry import ENCODERS
from headstart.errors import CheckpointError, DataError
from headstart.pretraining.base import RunConfig, Workplace
from headstart.pretraining.learner import Learner
from headstart.pretraining.objectives import AnyPretraining, recorded
from headstart.progress import Progress
from headstart.text.documents import content_key, discover
from headstart.text.shards import Shards
from headstart.text.tokenise import Corpora, prepare
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

PERPLEXITY = "perplexity"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run as its folder has it. weights: by the names they have there."""

    path: Path
    pretraining: AnyPretraining
    config: RunConfig
    data: Table
    weights: dict[str, Tensor]

    @classmethod
    def open(cls, path: Path) -> FinishedRun:
        directory = RunDirectory.open(path)
        before = recorded(directory)
        config = resolve(before.pretraining.config, before.settings, str(path / "config.toml"))
        return cls(path, before.pretraining, config, before.data, read_tensors(directory.weights))

    def encoder_weights(self) -> dict[str, Tensor]:
        return ENCODERS[self.config.kind].weights_in_run(self.weights)

    def with_encoder(self, encoder: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The run's weights with another encoder of the same names and shapes, those of its `state_dict`."""
        return self.pretraining.with_encoder(self.weights, encoder)

    def learner(
        self, held_out: Sequence[str] | None = None, cache: Path | None = None
    ) -> Generator[Progress, None, Learner | None]:
        """What evaluates weights of this run's shapes, once they are loaded into it, on held-out text.

        held_out: files, folders or globs; left out, what the run itself held out. None is returned if that is no longer
        there as it was, or if the run held out nothing.
        """
        place = Workplace(cache if cache is not None else cache_home(), os.cpu_count() or 1)
        tokenizer = load_tokenizer(self.path)
        shards = yield from self._shards(tokenizer, held_out, place)
        if shards is None:
            return None
        measurable = self.pretraining.measurable(self.config, shards)
        # The learner is only measured, never trained: the held-out text stands in for the text it would be trained on.
        return (yield from self.pretraining.learner(measurable, tokenizer, Corpora(shards, shards, True), place))

    def perplexities(
        self,
        candidates: Sequence[Mapping[str, Tensor]],
        units: int,
        held_out: Sequence[str] | None = None,
        cache: Path | None = None,
    ) -> Generator[Progress, None, list[float] | None]:
        """The held-out perplexity with each of these weights in turn, over at most about `units` units.

        None where `learner` gives None.
        """
        learner = yield from self.learner(held_out, cache)
        if learner is None:
            return None
        found = [self._perplexity(learner, weights, units) for weights in candidates]
        measured = [perplexity for perplexity in found if perplexity is not None]
        if len(measured) == len(found):
            return measured
        if held_out is not None:
            raise DataError(f"{held_out[0]}: too little text to measure {self.path} on. Give more held-out text.")
        return None

    def _shards(
        self, tokenizer: Tokenizer, held_out: Sequence[str] | None, place: Workplace
    ) -> Generator[Progress, None, Shards | None]:
        """The held-out text as the run reads text, or None if there is none."""
        own = "valid" if "valid" in self.data else "sources"
        if held_out is not None:
            paths = discover(held_out)
        else:
            paths = [Path(path) for path in self.data[own]]
            if not are_as_they_were(paths, self.data["valid_content" if own == "valid" else "content"]):
                return None
        # Text that is held out as a whole needs no split, and then the text the run trained on is not read at all.
        whole = held_out is not None or own == "valid"
        text = self.config.text
        corpora = yield from prepare(
            paths,
            None,
            tokenizer,
            text.model_copy(update={"valid_share": 0.0}) if whole else text,
            cache=place.cache,
            max_sentence=self.pretraining.longest_sentence(self.config),
            workers=place.workers,
        )
        return corpora.train if whole else corpora.valid

    def _perplexity(self, learner: Learner, weights: Mapping[str, Tensor], units: int) -> float | None:
        missing = sorted(learner.weights().keys() - weights.keys())
        if missing:
            raise CheckpointError(
                f"{self.path}: its perplexity cannot be measured, because its weights lack '{missing[0]}', what its "
                "vectors were trained against; a compact run keeps the vectors alone."
            )
        learner.load_weights(weights)
        return learner.evaluate(units).get(PERPLEXITY)


def are_as_they_were(paths: Sequence[Path], content: str) -> bool:
    """A file that has changed counts as gone: what was trained on may now stand where held-out text stood."""
    return all(path.is_file() for path in paths) and content_key(paths) == content
