"""The points of the charts, and the same as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.growth.series import SERIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    series: str
    line: str
    x: float
    tokens: int
    seconds: float
    peak_bytes: int

    @property
    def microseconds(self) -> float:
        """Per token."""
        return 1e6 * self.seconds / self.tokens

    @property
    def megabytes(self) -> float:
        return self.peak_bytes / 1e6

    def as_row(self) -> dict[str, Any]:
        return {**asdict(self), "seconds_per_token": self.seconds / self.tokens}


def lines_of(points: Sequence[Point], series: str) -> dict[str, list[Point]]:
    """The points of each line of a chart, by what grows."""
    found: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.x):
        if point.series == series:
            found.setdefault(point.line, []).append(point)
    # In the order they were measured in.
    return {line: found[line] for line in dict.fromkeys(point.line for point in points) if line in found}


def markdown(points: Sequence[Point]) -> str:
    """A table for each thing that grows: time per token and peak memory of each line, and last against first."""
    parts = []
    for series, grows in SERIES.items():
        lines = lines_of(points, series)
        if not lines:
            continue
        parts += [f"| {grows} | {' | '.join(lines)} |", "|---:|" + "---:|" * len(lines)]
        for x in sorted({point.x for line in lines.values() for point in line}):
            cells = (cell(next((point for point in line if point.x == x), None)) for line in lines.values())
            parts.append(f"| {number(x)} | {' | '.join(cells)} |")
        parts += [f"| last / first | {' | '.join(map(ratio, lines.values()))} |", ""]
    return "\n".join(parts)


def cell(point: Point | None) -> str:
    return "" if point is None else f"{point.microseconds:,.1f} µs, {point.megabytes:,.0f} MB"


def ratio(line: Sequence[Point]) -> str:
    first, last = line[0], line[-1]
    memory = last.peak_bytes / first.peak_bytes if first.peak_bytes > 0 else float("nan")
    return f"time {last.microseconds / first.microseconds:.2f}, memory {memory:.2f}"


def number(x: float) -> str:
    return f"{x:,.0f}" if x >= 10 or x == round(x) else f"{x:.1f}"
