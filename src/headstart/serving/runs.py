"""The runs and comparisons under a folder: their curves, read from their logs, while they run as well as afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import Table, read_toml
from headstart.errors import DataError, HeadstartError

LOG, CONFIG, REPORT, RESULTS = "log.jsonl", "config.toml", "report.html", "results.json"
DEEPEST = 3
"""Folders below the one that is watched."""
MOST_POINTS = 400
"""Of a curve; more would lie on the same pixels."""
LOG_BYTES = 50_000_000
"""Of a log, from its end: a million steps."""
QUIET_SECONDS = 120
"""After which a run that wrote nothing, and did not end, counts as stopped."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What a run's log tells. loss: (step, loss); evaluations: of each figure, (step, value)."""

    loss: list[tuple[int, float]]
    evaluations: dict[str, list[tuple[int, float]]]
    finished: bool


class Shelf:
    """What is under a folder, by names that are its paths from there. A name that is not found there opens nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None and not folder.is_dir():
            raise DataError(f"{folder}: there is no such folder; --runs names one with runs in it.")

    def runs(self) -> list[Table]:
        return [facts_of(name, path) for name, path in self._having(LOG)]

    def comparisons(self) -> list[str]:
        return [name for name, path in self._having(REPORT) if (path / RESULTS).is_file()]

    def curve(self, name: str) -> Curve:
        return curve_of(self._named(name, LOG) / LOG)

    def report(self, name: str) -> bytes:
        return (self._named(name, REPORT) / REPORT).read_bytes()

    def _named(self, name: str, file: str) -> Path:
        found = dict(self._having(file))
        if name not in found:
            raise DataError(f"There is no run called '{name:.100}' any more.")
        return found[name]

    def _having(self, file: str) -> Iterator[tuple[str, Path]]:
        if self.folder is None:
            return
        for depth in range(DEEPEST + 1):
            for path in sorted(self.folder.glob("/".join([*["*"] * depth, file]))):
                yield path.parent.relative_to(self.folder).as_posix(), path.parent


def facts_of(name: str, path: Path) -> Table:
    try:
        kind = str(read_toml(path / CONFIG).get("kind", "run"))
    except HeadstartError:  # it has just begun, or is being written
        kind = "run"
    quiet = time.time() - (path / LOG).stat().st_mtime
    last = last_lines(path / LOG, 4_000)
    finished = any("final" in line for line in last)
    state = "finished" if finished else "running" if quiet < QUIET_SECONDS else "stopped"
    step = max((line["step"] for line in last if isinstance(line.get("step"), int)), default=0)
    return {"name": name, "kind": kind, "state": state, "step": step}


def last_lines(path: Path, size: int) -> list[dict[str, Any]]:
    """The whole lines among the last bytes of a log; the last may be half written, and the first cut."""
    with path.open("rb") as file:
        start = max(0, path.stat().st_size - size)
        file.seek(start)
        lines = file.read().split(b"\n")
    found = []
    for line in lines[1 if start else 0 :]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def curve_of(path: Path) -> Curve:
    loss: list[tuple[int, float]] = []
    evaluations: dict[str, list[tuple[int, float]]] = {}
    finished = False
    for line in last_lines(path, LOG_BYTES):
        finished = finished or "final" in line
        step = line.get("step")
        if not isinstance(step, int):
            continue
        if isinstance(line.get("loss"), float):
            loss.append((step, line["loss"]))
        for figure, value in figures_of(line).items():
            if isinstance(value, int | float):
                evaluations.setdefault(figure, []).append((step, float(value)))
    return Curve(thinned(loss), {name: thinned(points) for name, points in evaluations.items()}, finished)


def figures_of(line: dict[str, Any]) -> dict[str, Any]:
    found = line.get("evaluation")
    return found if isinstance(found, dict) else {}


def thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most MOST_POINTS, each the mean of those it stands for."""
    share = -(-len(points) // MOST_POINTS) or 1
    groups = [points[first : first + share] for first in range(0, len(points), share)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]
