"""What reproducing a claim gave: tables, pictures and findings, each with a verdict that its numbers decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from headstart.report.lines import Point

Unit = Literal["", "%", "points", "s", "x"]
"""%: a share, shown in per cent; points: a difference of shares; s: seconds; x: so many times."""
Verdict = Literal["holds", "fails", "undecided"]
Expected = Literal["above", "below", "near"]
"""What a claim says of a difference: above zero, below zero, or within a margin around zero."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A number. interval: 95 %, in the number's own unit."""

    value: float
    interval: tuple[float, float] | None = None
    unit: Unit = ""

    def __str__(self) -> str:
        write = WRITTEN[self.unit]
        if self.interval is None:
            return write(self.value)
        low, high = map(write, self.interval)
        return f"{write(self.value)} ({low} to {high})"


def point(x: float, measured: Measured) -> Point:
    """A number as a point of a picture; shares in per cent."""
    factor = 100 if measured.unit == "%" else 1
    return Point(x, factor * measured.value, *(factor * bound for bound in measured.interval or ()))


ROUNDING = 1e-12


def plain_number(value: float) -> str:
    """Three digits that count, and whole numbers from a hundred on; what rounding leaves of zero is zero."""
    if abs(value) >= 100 or value.is_integer():
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) > ROUNDING else "0"


def points(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


WRITTEN: dict[Unit, Callable[[float], str]] = {
    "": plain_number,
    "%": lambda value: f"{100 * value:.1f}",
    "points": points,
    "s": lambda value: f"{value:,.1f} s",
    "x": lambda value: f"{plain_number(value)} x",
}

TableCell = Measured | str | None
"""None: there is nothing to show."""


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """A table of the page. Every row has a cell for each column."""

    title: str
    columns: list[str]
    rows: list[list[TableCell]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: a row has {len(row)} cells for {len(self.columns)} columns: {row}")


@dataclass(frozen=True, slots=True)
class Picture:
    """An <svg> element. name: of its file, without .svg."""

    name: str
    title: str
    svg: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison that the claim is about, what came of it, and whether that is as the claim says."""

    sentence: str
    verdict: Verdict
    difference: Measured | None = None
    p: float | None = None


def verdict_of(difference: Measured, expected: Expected = "above", margin: float = 0.0) -> Verdict:
    """Whether a difference is what a claim says. An interval that allows both leaves it undecided.

    A number without an interval is taken as certain: text that is the same for both sides has no chance in it.
    margin: for "near", how far from zero still counts as close.
    """
    low, high = difference.interval or (difference.value, difference.value)
    if expected == "near":
        is_so, is_not = -margin <= low and high <= margin, low > margin or high < -margin
    else:
        if expected == "below":
            low, high = -high, -low
        is_so, is_not = low > 0, high < 0
    return "holds" if is_so else "fails" if is_not else "undecided"


def found(
    sentence: str, difference: Measured, expected: Expected = "above", *, margin: float = 0.0, p: float | None = None
) -> Finding:
    """The finding that a difference gives. sentence: what is compared; the difference is written behind it."""
    return Finding(sentence, verdict_of(difference, expected, margin), difference, p)


T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for a two-sided 95 % interval, by degrees of freedom from 1 on; the last for more."""


def over_seeds(values: Sequence[float], unit: Unit = "") -> Measured:
    """The mean of a few runs with its t interval; one run alone has none."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Measured(mean, None, unit)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = T_95[min(n - 1, len(T_95)) - 1] * deviation / math.sqrt(n)
    return Measured(mean, (mean - half, mean + half), unit)


def found_over_seeds(
    sentence: str, differences: Sequence[float], expected: Expected = "above", unit: Unit = ""
) -> Finding:
    """The finding of differences between two runs of the same seed; one seed alone decides nothing."""
    difference = over_seeds(differences, unit)
    if difference.interval is None:
        return Finding(sentence, "undecided", difference)
    return found(sentence, difference, expected)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a claim's `run` returns."""

    tables: list[ClaimTable]
    findings: list[Finding]
    pictures: list[Picture] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    """What limits the claim here, in sentences: data that were not there, seeds that collapsed."""


@checked(frozen=True, slots=True, kw_only=True, config=ConfigDict(ser_json_inf_nan="constants"))
class ClaimResult:
    """An outcome with what the page says about it, as result.json holds it."""

    name: str
    number: int
    title: str
    source: str
    """Who makes the claim."""
    command: str
    key: str
    """Of everything that decides the outcome."""
    seconds: float
    """Over all the processes that worked on it."""
    machine: str
    threads: int
    scale: str
    headstart: str
    outcome: Outcome


RESULT = TypeAdapter(ClaimResult)


def result_to_json(result: ClaimResult) -> str:
    return RESULT.dump_json(result, indent=1).decode()


def result_from_json(text: str) -> ClaimResult | None:
    """None if the file is not whole, or of another version: the claim is then run again."""
    try:
        return RESULT.validate_json(text)
    except ValidationError:
        return None
