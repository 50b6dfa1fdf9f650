"""Compact runs: a pretrained encoder with its heads in a quarter of the bytes, and what that cost.

A compact run is a run directory that every command takes, without log and checkpoints and without the paths of the
machine that it was made on.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headstart.config import Table
from headstart.encoders.registry import ENCODERS
from headstart.errors import CheckpointError, ConfigError
from headstart.pretrained import COMPACTED, Pretrained, run_table, was_pretrained_here, weights_of
from headstart.pretraining.card import compact_card, import_record, imported_card
from headstart.pretraining.held_out import FinishedRun
from headstart.progress import Progress
from headstart.text.building import OUT_ADVICE
from headstart.training.compact import FORMAT, LargestError, largest_error, pack, unpack
from headstart.training.run import RunDirectory
from headstart.training.tensors import write_tensors
from headstart.weights.new_folder import new_folder

PRECISION = "int8"
UNITS = 50_000
"""Of held-out text that are measured, before and after."""


@dataclass(frozen=True, slots=True)
class CompactLoss:
    """What fewer bytes cost."""

    precision: str
    full_bytes: int
    """Of the tensors in float32."""
    compact_bytes: int
    error: LargestError
    left_out: tuple[str, ...]
    """Tensors of the run that neither the encoder nor its heads need: what word vectors were trained against."""
    before: float | None = None
    """The held-out perplexity of the run; None where it was not measured."""
    after: float | None = None
    held_out: tuple[str, ...] = ()
    """The names of the files that it was measured on."""


def write_compact(
    pretrained: Pretrained,
    run: Path | None,
    out: Path,
    *,
    precision: str = PRECISION,
    held_out: Sequence[str] | None = None,
    notes: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Generator[Progress, None, CompactLoss]:
    """Write a compact run into the new folder `out`, with the loss on its card.

    run: the run directory that the encoder comes from, if it comes from one. precision: of the matrices, int8 or
    float16. held_out: files, folders or globs on which the run's own objective is measured before and after.
    notes: further lines of the card, by their titles.
    """
    finished = FinishedRun.open(run) if run is not None and was_pretrained_here(run) else None
    if run is not None and COMPACTED in RunDirectory(run).read_config().get("data", {}):
        raise CheckpointError(f"{run}: is compact already.")
    stored = pack(weights_of(pretrained), precision)
    loss = yield from measured_loss(pretrained, finished, stored, precision, held_out, cache)
    with new_folder(out) as folder:
        write_tensors(RunDirectory(folder).weights, stored, OUT_ADVICE, FORMAT)
        pretrained.tokenizer.save(folder)
        table, card = described(pretrained, run, out)
        RunDirectory(folder).write_config(without_places({**table, "data": {**table["data"], COMPACTED: precision}}))
        RunDirectory(folder).write_card(compact_card(card, loss_text(loss), notes or {}))
    return loss


def measured_loss(
    pretrained: Pretrained,
    finished: FinishedRun | None,
    stored: Mapping[str, Tensor],
    precision: str,
    held_out: Sequence[str] | None = None,
    cache: Path | None = None,
) -> Generator[Progress, None, CompactLoss]:
    """How far the packed tensors are from the encoder's and the heads' own and, on held-out text, what that costs."""
    exact, changed = weights_of(pretrained), unpack(stored)
    left_out = () if finished is None else tuple(sorted(finished.weights.keys() - exact.keys()))
    before, after = None, None
    if held_out is not None:
        if finished is None:
            raise ConfigError(
                f"{pretrained.name or 'This encoder'}: held-out text measures the objective of a run, and this was not "
                "pretrained here. Leave it out."
            )
        candidates = [finished.weights, replaced(finished, changed)]
        found = yield from finished.perplexities(candidates, UNITS, held_out, cache)
        before, after = found or (None, None)
    return CompactLoss(
        precision=precision,
        full_bytes=4 * sum(tensor.numel() for tensor in exact.values()),
        compact_bytes=sum(tensor.nbytes for tensor in stored.values()),
        error=largest_error(exact, changed),
        left_out=left_out,
        before=before,
        after=after,
        held_out=tuple(Path(place).name for place in held_out or ()),
    )


def replaced(finished: FinishedRun, changed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a run with the encoder and the heads replaced by changed ones."""
    encoder = ENCODERS[finished.config.kind]
    heads = {name: tensor for name, tensor in changed.items() if not name.startswith(encoder.run_prefix)}
    return {**finished.with_encoder(encoder.weights_in_run(changed)), **heads}


def loss_text(loss: CompactLoss) -> str:
    """For the card, in a line."""
    form = "int8 with a scale for each row" if loss.precision == "int8" else loss.precision
    full, compact = (f"{size / 1e6:.1f}" for size in (loss.full_bytes, loss.compact_bytes))
    text = (
        f"the matrices are {form}: {compact} MB instead of {full}. The largest error of a tensor is "
        f"{100 * loss.error.share:.2f} % of its norm ('{loss.error.tensor}')."
    )
    if loss.before is not None and loss.after is not None:
        files = ", ".join(loss.held_out)
        text += f" Held-out perplexity ({files}): {loss.before:,.2f} before, {loss.after:,.2f} as it is here."
    return f"{text} Left out: {', '.join(loss.left_out)}." if loss.left_out else text


def described(pretrained: Pretrained, run: Path | None, out: Path) -> tuple[Table, str]:
    """config.toml and CARD.md of the run that the encoder comes from, or what an import would write."""
    if run is not None:
        card = run / "CARD.md"
        return RunDirectory(run).read_config(), card.read_text(encoding="utf-8") if card.is_file() else ""
    record = import_record(pretrained)
    return run_table(pretrained, record), imported_card(out.name, pretrained, record)


def without_places(value: Any) -> Any:
    """The same with the name alone for every absolute path: the folders of one machine mean nothing on another."""
    if isinstance(value, Mapping):
        return {key: without_places(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_places(inner) for inner in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
