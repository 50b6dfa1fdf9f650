"""The folder of a comparison: its plan, its cells and its best models, each written whole or not at all."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headstart.atomic import PARTIAL, write_text
from headstart.comparison.rows import Row
from headstart.config import Table
from headstart.errors import CheckpointError
from headstart.pretraining.pretrain import flat

LOCK = "lock"
CELL_KEYS = ("row", "labels", "seed", "accuracy", "macro_f1", "seconds", "predicted", "probabilities")


class ComparisonFolder:
    """plan.json, gold.json, pretrained/, cells/, models/, and at the end results.json, results.csv, report.html."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan = path / "plan.json"
        self.gold = path / "gold.json"
        self.cells = path / "cells"
        self.models = path / "models"
        self.pretrained = path / "pretrained"

    def check(self, plan: Table, resume: bool) -> None:
        """Refuse a folder with anything else in it than this same comparison. Writes nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(f"{self.path}: is a file; --out names the folder of the comparison.")
        if not self.plan.exists():
            held = [entry.name for entry in self.path.iterdir()] if self.path.exists() else []
            if any(name != LOCK and not name.endswith(PARTIAL) for name in held):
                raise CheckpointError(f"{self.path}: is not empty and holds no comparison. Give another --out.")
            return
        if not resume:
            raise CheckpointError(f"{self.path}: holds a comparison already. Go on with it, or give another --out.")
        before, now = flat(self._read_plan()), flat(plan)
        for key in sorted(before.keys() | now.keys()):
            if before.get(key) != now.get(key):
                raise CheckpointError(
                    f"{self.path}: holds another comparison: '{key}' was {shown(before, key)} and is now "
                    f"{shown(now, key)}. Give the same as before to go on with it, or another --out."
                )

    def _read_plan(self) -> Table:
        try:
            plan = json.loads(self.plan.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.plan}: is broken ({error}). Give another --out.") from error
        if not isinstance(plan, dict):
            raise CheckpointError(f"{self.plan}: is not the plan of a comparison. Give another --out.")
        return plan

    @contextmanager
    def claimed(self, plan: Table, gold: Table) -> Iterator[None]:
        """Keep other processes off, write the plan down, and remove what a killed process left half-made."""
        try:
            for folder in (self.path, self.cells, self.models, self.pretrained):
                folder.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("w")
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be written ({error.strerror}). Give another --out.") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CheckpointError(
                    f"{self.path}: another process is at work on this comparison; wait for it."
                ) from error
            for folder in (self.path, self.cells, self.models):
                for partial in folder.glob(f"*{PARTIAL}"):
                    shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
            if not self.plan.exists():
                write_text(self.gold, json.dumps(gold))
                write_text(self.plan, json.dumps(plan, indent=1, ensure_ascii=False))
            yield

    def cell_path(self, row: Row, labels: int, seed: int) -> Path:
        return self.cells / f"{row.name}--{labels}--{seed}.json"

    def read_cell(self, row: Row, labels: int, seed: int, dev_examples: int) -> Table | None:
        """A cell that is there and whole; a broken one counts as missing and is fitted again."""
        try:
            cell = json.loads(self.cell_path(row, labels, seed).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(cell, dict) or not all(key in cell for key in CELL_KEYS):
            return None
        is_this = (cell["row"], cell["labels"], cell["seed"]) == (row.name, labels, seed)
        is_whole = is_this and len(cell["predicted"]) == len(cell["probabilities"]) == dev_examples
        return cell if is_whole else None

    def write_cell(self, row: Row, cell: Table) -> None:
        write_text(self.cell_path(row, cell["labels"], cell["seed"]), json.dumps(cell))

    def keep_if_best(self, row: Row, record: Mapping[str, Any], save: Callable[[Path], None]) -> None:
        """Put a model in models/ if its accuracy is above that of the one there; ties keep the earlier seed.

        The cell is to be written after this: a process killed in between fits that cell again and keeps the same.
        """
        note, model = self.models / f"{row.name}.json", self.models / row.name
        if model.is_dir() and record["accuracy"] <= best_accuracy(note):
            return
        fresh, old = (self.models / f"{row.name}.{state}{PARTIAL}" for state in ("new", "old"))
        save(fresh)
        try:
            if model.exists():
                model.rename(old)
            fresh.rename(model)
        except OSError as error:
            raise CheckpointError(f"{model}: the model cannot be put in place ({error.strerror}).") from error
        write_text(note, json.dumps(record, indent=1, ensure_ascii=False))
        shutil.rmtree(old, ignore_errors=True)


def best_accuracy(note: Path) -> float:
    try:
        return float(json.loads(note.read_text(encoding="utf-8"))["accuracy"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1.0  # no whole note: whatever comes is better


def shown(leaves: Table, key: str) -> str:
    if key not in leaves:
        return "absent"
    text = repr(leaves[key])
    return text if len(text) <= 60 else f"{text[:57]}..."
