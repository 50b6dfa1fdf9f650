"""The rows of the table as text."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Measurement

MISSED = "missed"
COLUMNS = ("work", "ours", "peer", "ratio", "goal", "of the ceiling", "")
NUMBERS = (1, 2, 3, 4, 5)
"""Columns that stand to the right."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A work that gave no row, or ended before its last one."""

    work: str
    why: str


Row = Measurement | Failure


def cells(row: Row, ceiling: float | None) -> tuple[str, ...]:
    if isinstance(row, Failure):
        return row.work, "", "", "", "", "", f"FAILED: {row.why}"
    share = None if ceiling is None else row.share(ceiling)
    remarks = [f"{row.unit}; peer: {row.peer_name}", row.note, row.shortfall]
    return (
        row.work,
        figure(row.rate),
        figure(row.peer_rate),
        f"{row.ratio:.2f}",
        "" if row.goal is None else f"{row.goal:.2f}" + ("" if row.ratio >= row.goal else f" {MISSED}"),
        "" if share is None else f"{share:.0%}",
        "; ".join(filter(None, remarks)),
    )


def figure(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def table(rows: list[Row], ceiling: float | None) -> str:
    """All rows under their headings, every column as wide as its widest cell."""
    lines = [COLUMNS, *(cells(row, ceiling) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(aligned(line, widths) for line in lines)


def aligned(line: tuple[str, ...], widths: list[int]) -> str:
    placed = [
        cell.rjust(width) if column in NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def summary(rows: list[Row]) -> str:
    """How many goals were reached, and which not."""
    with_goal = [row for row in rows if isinstance(row, Measurement) and (row.goal is not None or row.shortfall)]
    missed = [row.work for row in with_goal if not row.reached]
    failed = [row.work for row in rows if isinstance(row, Failure)]
    parts = [f"{len(with_goal) - len(missed)} of {len(with_goal)} goals reached"]
    parts += [f"missed: {'; '.join(missed)}"] if missed else []
    parts += [f"failed: {'; '.join(failed)}"] if failed else []
    return ". ".join(parts) + "."
