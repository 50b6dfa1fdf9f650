"""The encoders that a comparison pretrains itself: their settings, their share of the time, and only once each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headstart.atomic import write_text
from headstart.comparison.events import RowPretraining
from headstart.comparison.joint_pretraining import Pretrainings
from headstart.comparison.rows import KINDS, Row
from headstart.config import Table, nearest, overlay
from headstart.errors import BudgetError, CheckpointError, ConfigError, settings_renamed
from headstart.pretraining.events import Finished
from headstart.pretraining.loop import LENGTHS
from headstart.pretraining.pretrain import Event, pretrain
from headstart.progress import Notice
from headstart.report.results import RowFacts
from headstart.training.ranks import Alone, Ranks
from headstart.training.run import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """How a kind of encoder is pretrained unless settings say otherwise. share: of the time for all pretraining."""

    size: str | None
    share: float
    settings: Table = field(default_factory=dict)


# Within minutes on a CPU the smallest networks learn most. Word vectors gain little from more than a fifth of the time.
PRETRAINING = {
    "static": Defaults(size=None, share=0.2),
    "elmo": Defaults(size="tiny", share=0.4),
    "bert": Defaults(size="tiny", share=0.4),
}
SMALL_SHARE = "static"
TEXT = "text"
DEFAULT_SECONDS = 20 * 60.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one encoder is pretrained. seconds: None if its settings say for how long."""

    kind: str
    size: str | None
    settings: Table
    seconds: float | None

    def as_table(self) -> Table:
        return {"size": self.size, "settings": self.settings, "seconds": self.seconds}

    def key_of(self, setting: str) -> str:
        """A setting of this pretraining, as a comparison takes it; those of the text are for all kinds."""
        return f"pretrain.{setting}" if setting.startswith(f"{TEXT}.") else f"pretrain.{self.kind}.{setting}"


def recipes(kinds: Iterable[str], seconds: float, given: Table, vectors: Path | None = None) -> list[Recipe]:
    """One for each kind, oldest generation first. given: settings by kind, and those of [text] for all.

    vectors: where the comparison's word vectors will be by then; the language models start from them.
    """
    for name, table in given.items():
        if name not in (*PRETRAINING, TEXT):
            raise ConfigError(f"'pretrain.{name}' cannot be set.{nearest(name, (*PRETRAINING, TEXT))}")
        if not isinstance(table, dict):
            raise ConfigError(f"'pretrain.{name}' is a section with keys; got the value {table!r}.")
    wanted = [kind for kind in KINDS if kind in set(kinds)]
    shares = divided(wanted, seconds)
    found = []
    for kind in wanted:
        entry = PRETRAINING[kind]
        start = {"vectors": str(vectors)} if vectors is not None and kind != SMALL_SHARE else {}
        settings = overlay(entry.settings, start, {TEXT: given[TEXT]} if TEXT in given else {}, given.get(kind, {}))
        has_length = bool(settings.get("training", {}).keys() & set(LENGTHS))
        size = settings.pop("size", entry.size)
        found.append(Recipe(kind, size, settings, None if has_length else shares[kind]))
    return found


def divided(kinds: list[str], seconds: float) -> dict[str, float]:
    """Word vectors get their share and no more; the others divide what is left."""
    small = {kind: PRETRAINING[kind].share for kind in kinds if kind == SMALL_SHARE}
    large = {kind: PRETRAINING[kind].share for kind in kinds if kind != SMALL_SHARE}
    left = 1.0 - sum(small.values())
    return {
        **{kind: share * seconds for kind, share in small.items()},
        **{kind: left * share / sum(large.values()) * seconds for kind, share in large.items()},
    }


def check_recipe(recipe: Recipe, text: list[str], out: Path) -> None:
    """Raise for a wrong setting now, rather than after the encoders before it have taken minutes."""
    if not finished_note(out).exists():
        with settings_renamed(recipe.key_of):
            start_pretraining(recipe, text, out, cache=out, workers=1).close()


def start_pretraining(
    recipe: Recipe, text: list[str], out: Path, *, cache: Path, workers: int | None, ranks: Ranks | None = None
) -> Generator[Event, None, None]:
    # A run that was stopped keeps the time it began with: more than the recipe's, where that was too short.
    seconds = recipe.seconds if RunDirectory.holds_nothing(out) else None
    return pretrain(
        recipe.kind, text, out=out, size=recipe.size, config=recipe.settings, budget=seconds, resume=True,
        cache=cache, workers=workers, ranks=ranks,
    )  # fmt: skip


def pretrain_own(
    recipe: Recipe,
    text: list[str],
    out: Path,
    *,
    cache: Path,
    workers: int | None,
    pretrainings: Pretrainings | None = None,
) -> Generator[RowPretraining | Event, None, None]:
    """Pretrain into `out`, or resume what is there; an encoder that is finished is not touched again."""
    pretrainings = pretrainings or Pretrainings(Alone())
    note = finished_note(out)
    if note.exists():
        return
    yield RowPretraining(recipe.kind, recipe.seconds)
    while True:
        try:
            with (
                settings_renamed(recipe.key_of),
                pretrainings.begun(recipe.kind) as ranks,
                closing(start_pretraining(recipe, text, out, cache=cache, workers=workers, ranks=ranks)) as events,
            ):
                for event in events:
                    yield event
            break
        except BudgetError as error:
            if recipe.seconds is None:  # the user's own time, not a share
                raise
            # A slow machine should get its table late rather than not at all. Nothing was trained yet, and the
            # folder records the shorter time, so it is removed.
            shutil.rmtree(out)
            recipe = replace(recipe, seconds=2 * recipe.seconds)
            yield Notice(f"{error.problem} Trying again with {recipe.seconds:.0f} s.")
    if not isinstance(event, Finished):
        raise RuntimeError(f"the pretraining of {recipe.kind} ended without a result")
    write_text(note, json.dumps({"seconds": event.elapsed, "scores": event.scores}, indent=1))


def finished_note(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")


def row_facts(row: Row) -> RowFacts:
    """The row, with the seconds and held-out scores of its encoder's pretraining where a log has them."""
    final: Table = {}
    if row.source is not None:
        for line in log_lines(RunDirectory(row.source.path).log_file):
            final = line if "final" in line else final
    return RowFacts(
        name=row.name,
        title=row.title,
        source=None if row.source is None else str(row.source.path),
        kind=row.kind,
        how=row.how,
        pretraining_seconds=final.get("elapsed"),
        pretraining_scores={name: value for name, value in final.get("final", {}).items() if name != "units"},
        shortfalls=final.get("shortfalls", []),
    )


def log_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: the log of the run cannot be read ({error}).") from error
