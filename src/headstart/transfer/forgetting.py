"""What fine-tuning cost: the held-out perplexity of the language model an encoder came from, before and after."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from torch import Tensor, nn

from headstart.errors import CheckpointError
from headstart.pretraining.held_out import FinishedRun
from headstart.progress import Progress
from headstart.report.results import Forgetting


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
    finished = FinishedRun.open(run)
    given = {name: tensor.detach() for name, tensor in encoder.state_dict().items()}
    check_same_shapes(finished.encoder_weights(), given, run)
    candidates = [finished.weights, finished.with_encoder(given)]
    found = yield from finished.perplexities(candidates, units, held_out, cache)
    return None if found is None else Forgetting(*found)


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
