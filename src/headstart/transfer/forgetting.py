"""What fine-tuning cost: the held-out perplexity of the language model an encoder came from, before and after."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from torch import Tensor, nn

from headstart.config import Table, cache_home, resolve
from headstart.encoders.registry import ENCODERS
from headstart.errors import CheckpointError, DataError
from headstart.pretraining.base import RunConfig, Workplace
from headstart.pretraining.learner import Learner
from headstart.pretraining.objectives import AnyPretraining, recorded
from headstart.progress import Progress
from headstart.report.results import Forgetting
from headstart.text.documents import content_key, discover
from headstart.text.shards import Shards
from headstart.text.tokenise import Corpora, prepare
from headstart.text.tokenizer import Tokenizer, load_tokenizer
from headstart.training.run import RunDirectory
from headstart.training.tensors import read_tensors

PERPLEXITY = "perplexity"


def forgetting(
    run: Path,
    encoder: nn.Module,
    *,
    held_out: Sequence[str] | None = None,
    units: int = 8000,
    cache: Path | None = None,
) -> Generator[Progress, None, Forgetting | None]:
    """Measure `run`'s own objective, first with its own encoder and then with `encoder` in its place.

    held_out: files, folders or globs to measure on; left out, what the run itself held out. None is returned if that
    is no longer there as it was, or if the run held out nothing. At most about `units` units are measured.
    """
    directory = RunDirectory.open(run)
    before = recorded(directory)
    pretraining = before.pretraining
    config = resolve(pretraining.config, before.settings, str(run / "config.toml"))
    weights = read_tensors(directory.weights)
    given = {name: tensor.detach() for name, tensor in encoder.state_dict().items()}
    check_same_shapes(ENCODERS[config.kind].weights_in_run(weights), given, run)
    place = Workplace(cache if cache is not None else cache_home(), os.cpu_count() or 1)
    tokenizer = load_tokenizer(run)
    shards = yield from held_out_shards(pretraining, config, tokenizer, before.data, held_out, place)
    if shards is None:
        return None
    # The learner is only measured, never trained: the held-out text stands in for the text it would be trained on.
    measurable = pretraining.measurable(config, shards)
    learner = yield from pretraining.learner(measurable, tokenizer, Corpora(shards, shards, True), place)
    own, after = (
        perplexity(learner, tensors, units) for tensors in (weights, pretraining.with_encoder(weights, given))
    )
    if own is None or after is None:
        if held_out is not None:
            raise DataError(f"{held_out[0]}: too little text to measure {run} on. Give more held-out text.")
        return None
    return Forgetting(own, after)


def held_out_shards(
    pretraining: AnyPretraining,
    config: RunConfig,
    tokenizer: Tokenizer,
    data: Table,
    held_out: Sequence[str] | None,
    place: Workplace,
) -> Generator[Progress, None, Shards | None]:
    """The held-out text as the run reads text, or None if there is none."""
    own = "valid" if "valid" in data else "sources"
    if held_out is not None:
        paths = discover(held_out)
    else:
        paths = [Path(path) for path in data[own]]
        if not are_as_they_were(paths, data["valid_content" if own == "valid" else "content"]):
            return None
    # Text that is held out as a whole needs no split, and then the text the run trained on is not read at all.
    whole = held_out is not None or own == "valid"
    corpora = yield from prepare(
        paths,
        None,
        tokenizer,
        config.text.model_copy(update={"valid_share": 0.0}) if whole else config.text,
        cache=place.cache,
        max_sentence=pretraining.longest_sentence(config),
        workers=place.workers,
    )
    return corpora.train if whole else corpora.valid


def are_as_they_were(paths: Sequence[Path], content: str) -> bool:
    """A file that has changed counts as gone: what was trained on may now stand where held-out text stood."""
    return all(path.is_file() for path in paths) and content_key(paths) == content


def check_same_shapes(own: Mapping[str, Tensor], given: Mapping[str, Tensor], run: Path) -> None:
    """The encoder that takes the place of the run's own must have its names and shapes."""
    for name in sorted(own.keys() | given.keys()):
        if name not in own or name not in given:
            raise CheckpointError(
                f"{run}: cannot be measured with another run's encoder: '{name}' is on one side only."
            )
        if own[name].shape != given[name].shape:
            raise CheckpointError(
                f"{run}: cannot be measured with another run's encoder: '{name}' has shape "
                f"{tuple(given[name].shape)}, wanted {tuple(own[name].shape)}."
            )


def perplexity(learner: Learner, weights: Mapping[str, Tensor], units: int) -> float | None:
    learner.load_weights(weights)
    return learner.evaluate(units).get(PERPLEXITY)
