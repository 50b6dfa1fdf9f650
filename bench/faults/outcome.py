"""What became of one fault, and the table of them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ("fault", "against", "cases", "as wanted", "not so", "ended in")
NUMBERS = (2, 3, 4)
"""Columns that stand to the right."""
SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Setting:
    """seed: of every random choice. quick: few cases of each. only: these cases, such as "csv" or "csv:17"."""

    folder: Path
    seed: int = 0
    quick: bool = False
    only: tuple[str, ...] = ()

    def wants(self, group: str, number: int | None = None) -> bool:
        """Whether a group of cases, or one of its cases, is asked for."""
        asked = [case.partition(":")[::2] for case in self.only]
        return not asked or any(
            wanted == group and (number is None or not one or int(one) == number) for wanted, one in asked
        )

    def wants_group(self, group: str, quick: Collection[str]) -> bool:
        """quick: the groups that the quick run has."""
        return self.wants(group) and (not self.quick or bool(self.only) or group in quick)

    def numbers(self, group: str, cases: int, quick: int) -> list[int]:
        """The cases of a group that are asked for. quick: how many the quick run has."""
        return [number for number in range(min(cases, quick) if self.quick else cases) if self.wants(group, number)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case ended. wrong: what was seen in place of what was wanted, or "" if it went as wanted."""

    row: str
    group: str
    number: int
    ended: str
    wrong: str = ""

    @property
    def case(self) -> str:
        return f"{self.group}:{self.number}"


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each group of cases, every column as wide as its widest cell."""
    lines = [COLUMNS, *(cells(group) for group in groups(outcomes))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(aligned(line, widths) for line in lines)


def groups(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    found: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault((outcome.row, outcome.group), []).append(outcome)
    return list(found.values())


def cells(group: Sequence[Outcome]) -> tuple[str, ...]:
    wrong = sum(bool(outcome.wrong) for outcome in group)
    ended = Counter(outcome.ended for outcome in group)
    return (
        group[0].row,
        group[0].group,
        f"{len(group):,}",
        f"{len(group) - wrong:,}",
        f"{wrong:,}",
        ", ".join(f"{how} {count:,}" for how, count in ended.most_common()),
    )


def aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    placed = [
        cell.rjust(width) if column in NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def failure_line(outcome: Outcome, seed: int) -> str:
    """What went wrong, and how to see it again."""
    again = f"--only {outcome.row} --case '{outcome.case}' --seed {seed}"
    return f"{outcome.row} {outcome.case}: {outcome.wrong[:SHOWN_CHARACTERS]} [{again}]"
