"""Throughput and latencies of runs, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Run:
    """seconds: the time to each answer; during: in which they came."""

    seconds: Sequence[float]
    during: float

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.during


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the runs of one side with so many clients. milliseconds: of PERCENTILES."""

    side: str
    clients: int
    rate: float
    milliseconds: tuple[float, ...]
    rates: tuple[float, ...]

    @staticmethod
    def of(side: str, clients: int, runs: Sequence[Run]) -> Figures:
        of_runs = [1000 * np.percentile(run.seconds, PERCENTILES) for run in runs]
        rates = tuple(run.rate for run in runs)
        return Figures(side, clients, median(rates), tuple(np.median(of_runs, axis=0).tolist()), rates)

    @property
    def p95(self) -> float:
        return self.milliseconds[PERCENTILES.index(95)]


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio that is wanted with so many clients."""

    what: str
    ratio: float
    wanted: float

    @property
    def reached(self) -> bool:
        return self.ratio >= self.wanted

    def __str__(self) -> str:
        return f"{self.what}: {self.ratio:.2f} times, wanted {self.wanted:g}{'' if self.reached else ': MISSED'}"


def table(rows: Sequence[Figures]) -> str:
    width = max(len(row.side) for row in rows)
    heads = "".join(f"{f'p{percentile}':>11}" for percentile in PERCENTILES)
    lines = [f"{'clients':>7}  {'':{width}}{'requests/s':>12}{heads}   of the runs"]
    for row in rows:
        times = "".join(f"{value:>8,.1f} ms" for value in row.milliseconds)
        rates = ", ".join(f"{rate:,.1f}" for rate in row.rates)
        lines.append(f"{row.clients:>7}  {row.side:{width}}{row.rate:>12,.1f}{times}   {rates}")
    return "\n".join(lines)
