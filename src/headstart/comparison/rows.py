"""The rows of a comparison: one head start and one way to use it each, in the order of the generations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.config import nearest
from headstart.errors import ConfigError
from headstart.transfer.start import SCRATCH

KINDS = {"static": "Word vectors", "elmo": "ELMo", "bert": "BERT"}
HOWS = {"frozen": "frozen", "finetune": "fine-tuned", "gradual": "unfrozen layer by layer"}
NAMES = (SCRATCH, *(f"{kind}-{how}" for kind in KINDS for how in HOWS))
DEFAULT_NAMES = (SCRATCH, "static-frozen", "elmo-frozen", "elmo-finetune", "bert-finetune")


@dataclass(frozen=True, slots=True)
class Source:
    """A pretrained encoder: its kind, where it is as the user gave it, and whether the comparison makes it itself."""

    kind: str
    path: Path
    made_here: bool = False
    from_elsewhere: bool = False
    """Pretrained by somebody else, so that its name says more than its kind."""

    @property
    def name(self) -> str:
        return self.path.resolve().name


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `group` is the name without the folder, which stands in it if a kind has several."""

    name: str
    title: str
    group: str
    kind: str
    how: str
    source: Source | None

    def is_called(self, names: Sequence[str]) -> bool:
        """By its name, its group, or its group with the name of its source, which works for the only one too."""
        full = None if self.source is None else f"{self.group}:{self.source.name}"
        return self.name in names or self.group in names or full in names


def kinds_needed(names: Sequence[str] | None, given: Iterable[Source] = ()) -> set[str]:
    """The kinds of encoders that rows of these names start from, without rows that name one of the given sources."""
    here = {source.name for source in given}
    wanted = [name for name in names or DEFAULT_NAMES if name.partition(":")[2] not in here]
    return {name.split("-")[0] for name in wanted} & KINDS.keys()


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if name.partition(":")[0] not in NAMES:
            raise ConfigError(f"--rows: no row is called '{name}'.{nearest(name, NAMES)}")
    if not names:
        raise ConfigError(f"--rows names no row. There are: {', '.join(NAMES)}.")


def choose_rows(sources: Sequence[Source], names: Sequence[str] | None) -> list[Row]:
    """The rows that the sources allow and `names` ask for: None takes the usual ones, of all sources."""
    possible = [Row(SCRATCH, "Scratch", SCRATCH, SCRATCH, "finetune", None)]
    for kind in KINDS:
        same_kind = [source for source in sources if source.kind == kind]
        possible += [row_of(source, how, len(same_kind) > 1) for how in HOWS for source in same_kind]
    all_names = [row.name for row in possible]
    for row in possible:
        if row.source is not None and all_names.count(row.name) > 1:
            raise ConfigError(
                f"--with: two runs of kind {row.kind} are in folders called '{row.source.name}', and rows are named by "
                f"folder. Rename one of them."
            )
    for name in names or ():
        if not any(row.is_called([name]) for row in possible):
            raise ConfigError(missing_source(name, possible))
    wanted = DEFAULT_NAMES if names is None else names
    rows = [row for row in possible if row.is_called(wanted)]
    if names is None and len(rows) < 2:
        raise ConfigError(
            "There is nothing to compare with scratch: give --text TEXT to pretrain on, or --with RUN for each "
            "pretrained encoder that shall take part."
        )
    return rows


def missing_source(name: str, possible: Sequence[Row]) -> str:
    group, colon, _ = name.partition(":")
    of_group = [row.name for row in possible if row.group == group]
    if colon and of_group:
        return f"--rows: no row is called '{name}'.{nearest(name, of_group)}"
    return (
        f"--rows: '{name}' needs a pretrained encoder of kind {group.split('-')[0]}: give one as --with RUN, "
        f"or --text TEXT to pretrain it."
    )


def row_of(source: Source, how: str, one_of_several: bool) -> Row:
    group = f"{source.kind}-{how}"
    shown = "own" if source.made_here else source.name
    told = f" ({shown})" if one_of_several or source.from_elsewhere else ""
    title = f"{KINDS[source.kind]}{told}, {HOWS[how]}"
    return Row(f"{group}:{source.name}" if one_of_several else group, title, group, source.kind, how, source)
