"""The rows of a comparison: an encoder and a way to use it each, in the order of the generations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headstart.config import nearest
from headstart.encoders.registry import ENCODERS
from headstart.errors import ConfigError
from headstart.transfer.start import SCRATCH, STACK

KINDS = {kind: encoder.title for kind, encoder in ENCODERS.items()}
SIDE_BY_SIDE = ("static", "elmo")
"""The encoders that a comparison puts side by side by itself, as the ELMo paper does in every task."""
GROUPS = ("static", "elmo", STACK, *(kind for kind in KINDS if kind not in SIDE_BY_SIDE))
HOWS = {"frozen": "frozen", "finetune": "fine-tuned", "gradual": "unfrozen layer by layer"}
NAMES = (SCRATCH, *(f"{kind}-{how}" for kind in GROUPS for how in HOWS))
DEFAULT_NAMES = (SCRATCH, "static-frozen", "elmo-frozen", "stack-frozen", "elmo-finetune", "bert-finetune")


@dataclass(frozen=True, slots=True)
class RowEncoder:
    """The pretrained encoder of a row. path: as the user gave it. made_here: pretrained by this comparison."""

    kind: str
    path: Path
    made_here: bool = False
    from_elsewhere: bool = False
    """Weights published by others: the title names them, as their kind alone says too little."""
    parts: tuple[Path, ...] = ()
    """Of encoders side by side, the path of each."""

    @property
    def name(self) -> str:
        return "+".join(path.resolve().name for path in self.parts or (self.path,))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table. The name is the group, followed by the encoder's folder if its kind has several."""

    name: str
    title: str
    group: str
    kind: str
    how: str
    source: RowEncoder | None

    def is_called(self, names: Sequence[str]) -> bool:
        """Whether one of `names` means this row: its name, its group, or group:folder, even if that is the only one."""
        full = None if self.source is None else f"{self.group}:{self.source.name}"
        return self.name in names or self.group in names or full in names


def kinds_needed(names: Sequence[str] | None, given: Iterable[RowEncoder] = ()) -> set[str]:
    """The kinds of encoder that rows of these names start from, apart from rows that name one of `given`."""
    here = {source.name for source in given}
    wanted = [name for name in names or DEFAULT_NAMES if name.partition(":")[2] not in here]
    kinds = {name.split("-")[0] for name in wanted}
    return (kinds | (set(SIDE_BY_SIDE) if STACK in kinds and names is not None else set())) & ENCODERS.keys()


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if name.partition(":")[0] not in NAMES:
            raise ConfigError(f"--rows: no row is called '{name}'.{nearest(name, NAMES)}")
    if not names:
        raise ConfigError(f"--rows is empty. Rows are: {', '.join(NAMES)}.")


def choose_rows(sources: Sequence[RowEncoder], names: Sequence[str] | None) -> list[Row]:
    """The rows that these encoders allow and `names` ask for. names: None for the default rows of every encoder."""
    sources = [*sources, *side_by_side(sources)]
    possible = [Row(SCRATCH, "Scratch", SCRATCH, SCRATCH, "finetune", None)]
    for kind in GROUPS:
        same_kind = [source for source in sources if source.kind == kind]
        possible += [row_of(source, how, len(same_kind) > 1) for how in HOWS for source in same_kind]
    all_names = [row.name for row in possible]
    for row in possible:
        if row.source is not None and all_names.count(row.name) > 1:
            raise ConfigError(
                f"--with: two encoders of kind {row.kind} are in folders called '{row.source.name}', and rows are "
                f"named after folders. Rename one of the folders."
            )
    for name in names or ():
        if not any(row.is_called([name]) for row in possible):
            raise ConfigError(missing_source(name, possible))
    wanted = DEFAULT_NAMES if names is None else names
    rows = [row for row in possible if row.is_called(wanted)]
    if names is None and len(rows) < 2:
        raise ConfigError(
            "There is nothing to compare with scratch: give --text TEXT to pretrain encoders on, or --with RUN for "
            "each encoder that is pretrained already."
        )
    return rows


def side_by_side(sources: Sequence[RowEncoder]) -> list[RowEncoder]:
    """Word vectors and ELMo as one source, where there is one of each and nobody gave encoders side by side."""
    parts = [[source for source in sources if source.kind == kind] for kind in SIDE_BY_SIDE]
    if any(len(found) != 1 for found in parts) or any(source.kind == STACK for source in sources):
        return []
    pair = [found[0] for found in parts]
    paths = tuple([source.path for source in pair])
    made_here = any(source.made_here for source in pair)
    return [RowEncoder(STACK, Path("+".join(map(str, paths))), made_here=made_here, parts=paths)]


def missing_source(name: str, possible: Sequence[Row]) -> str:
    group, colon, _ = name.partition(":")
    of_group = [row.name for row in possible if row.group == group]
    if colon and of_group:
        return f"--rows: no row is called '{name}'.{nearest(name, of_group)}"
    return (
        f"--rows: '{name}' needs a pretrained encoder of kind {group.split('-')[0]}: give one as --with RUN, "
        f"or --text TEXT to pretrain it."
    )


def row_of(source: RowEncoder, how: str, one_of_several: bool) -> Row:
    group = f"{source.kind}-{how}"
    which = "own" if source.made_here else source.name
    in_brackets = f" ({which})" if one_of_several or source.from_elsewhere else ""
    title = f"{KINDS[source.kind]}{in_brackets}" if source.kind != STACK else source.name
    if source.kind == STACK and source.made_here:
        title = " + ".join(KINDS[kind] for kind in SIDE_BY_SIDE)
    title = f"{title}, {HOWS[how]}"
    return Row(f"{group}:{source.name}" if one_of_several else group, title, group, source.kind, how, source)
