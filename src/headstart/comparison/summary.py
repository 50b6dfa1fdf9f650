"""From cells to results.json: the table so far, the time left, and at the end everything the report shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from headstart.comparison.data import Data, facts_of
from headstart.comparison.pretraining import pretraining_facts
from headstart.comparison.rows import Row
from headstart.comparison.significance import summarise
from headstart.config import Table

METRIC = "accuracy"
NOT_IN_RESULTS = ("predicted", "probabilities")


def table_so_far(cells: Sequence[Table]) -> list[Table]:
    """The mean over the seeds done, for every row and budget that has any."""
    scores: dict[tuple[str, int], list[float]] = defaultdict(list)
    for cell in cells:
        scores[cell["row"], cell["labels"]].append(cell[METRIC])
    return [
        {"row": row, "labels": labels, "mean": sum(found) / len(found), "scores": found}
        for (row, labels), found in scores.items()
    ]


def seconds_left(done: Sequence[Table], left: Sequence[tuple[str, int]]) -> float:
    """left: (row, labels) of each cell to do. A cell takes as long as those most like it took."""
    took: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in done:
        took[cell["row"]][cell["labels"]].append(cell["seconds"])
    overall = sum(cell["seconds"] for cell in done) / max(1, len(done))
    total = 0.0
    for row, labels in left:
        known = took.get(row)
        if not known:
            total += overall
            continue
        nearest = min(known, key=lambda count: abs(count - labels))
        total += sum(known[nearest]) / len(known[nearest])
    return total


def results_of(task: str, rows: list[Row], cells: list[Table], data: Data, train: Path, dev: Path) -> Table:
    """Everything that results.json holds. Cells are in the order of the plan."""
    gold = np.array(data.gold)
    correct = {(cell["row"], cell["labels"], cell["seed"]): np.array(cell["predicted"]) == gold for cell in cells}
    shown = [{key: value for key, value in cell.items() if key not in NOT_IN_RESULTS} for cell in cells]
    described = [row_facts(row) for row in rows]
    return {
        "task": task,
        "headstart": version("headstart"),
        "train": facts_of(data.train, train, data.names),
        "dev": facts_of(data.dev, dev, data.names),
        "labels": data.labels,
        "seeds": data.seeds,
        "metric": METRIC,
        "rows": described,
        "cells": shown,
        **summarise(described, shown, correct, data.labels, data.seeds),
        "notices": data.notices,
    }


def row_facts(row: Row) -> Table:
    return {
        "name": row.name,
        "title": row.title,
        "source": None if row.source is None else str(row.source.path),
        "kind": row.kind,
        "how": row.how,
        **pretraining_facts(row.source),
    }
