"""The folder of a comparison: its plan, its cells and its best models, each written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headstart.atomic import PARTIAL, locked, make_folder, taking_turns, write_text
from headstart.config import Table
from headstart.errors import CheckpointError
from headstart.pretraining.pretrain import flat
from headstart.report.results import Cell
from headstart.report.results_json import cell_to_json, read_cell
from headstart.tasks import ALIASES

LOCK = "lock"
MODELS_LOCK = "models.lock"


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
        """Refuse a folder that holds anything but this same comparison. Writes nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(
                f"{self.path}: is a file; --out takes the folder of the comparison. Give another --out."
            )
        if not self.plan.exists():
            held = [entry.name for entry in self.path.iterdir()] if self.path.exists() else []
            if any(name != LOCK and not name.endswith(PARTIAL) for name in held):
                raise CheckpointError(f"{self.path}: is not empty and holds no comparison. Give a new folder as --out.")
            return
        if not resume:
            raise CheckpointError(
                f"{self.path}: holds a comparison already. Give another folder, or resume=True to go on."
            )
        before, now = flat(self._read_plan()), flat(plan)
        before["task"] = ALIASES.get(before.get("task", ""), before.get("task"))  # plans once had the everyday name
        for key in sorted(before.keys() | now.keys()):
            if before.get(key) != now.get(key):
                raise CheckpointError(
                    f"{self.path}: holds another comparison: '{key}' was {shown(before, key)} and is now "
                    f"{shown(now, key)}. Ask for the same as before to go on with it, or give another --out."
                )

    def _read_plan(self) -> Table:
        try:
            plan = json.loads(self.plan.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{self.plan}: is broken ({error}). Give another --out.") from error
        if not isinstance(plan, dict):
            raise CheckpointError(f"{self.plan}: is not the plan of a comparison. Give another --out.")
        return plan

    @contextmanager
    def claimed(self, plan: Table, gold: Table) -> Iterator[None]:
        """Lock out other processes, write the plan, and remove what a killed process left half-made."""
        try:
            for folder in (self.path, self.cells, self.models, self.pretrained):
                make_folder(folder)
            (self.path / LOCK).touch()
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be written ({error.strerror}). Give another --out.") from error
        busy = f"{self.path}: another process is running this comparison. Wait until it ends."
        with locked(self.path / LOCK, busy):
            for folder in (self.path, self.cells, self.models):
                for partial in folder.glob(f"*{PARTIAL}"):
                    shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
            if not self.plan.exists():
                write_text(self.gold, json.dumps(gold))
                write_text(self.plan, json.dumps(plan, indent=1, ensure_ascii=False))
            yield

    def cell_path(self, row: str, labels: int, seed: int) -> Path:
        return self.cells / f"{row}--{labels}--{seed}.json"

    def read_cell(self, row: str, labels: int, seed: int, dev_examples: int) -> Cell | None:
        """A cell that is there and whole; a broken one counts as missing and is fitted again."""
        try:
            text = self.cell_path(row, labels, seed).read_text(encoding="utf-8")
            gold = json.loads(self.gold.read_text(encoding="utf-8")) if self.gold.exists() else None
        except (OSError, ValueError, RecursionError):
            return None
        cell = read_cell(text, gold)
        is_whole = cell is not None and cell.key == (row, labels, seed) and len(cell.counts) == dev_examples
        return cell if is_whole else None

    def write_cell(self, cell: Cell) -> None:
        write_text(self.cell_path(*cell.key), json.dumps(cell_to_json(cell)))

    def keep_if_best(self, cell: Cell, record: Table, save: Callable[[Path], None]) -> None:
        """Put a cell's model in models/ if it is better than the one there; ties keep the earlier seed, in whichever
        order the seeds were fitted.

        A model that gives one answer to everything is never better than one that does not, whatever its score.
        The cell is to be written after this: a process killed in between fits that cell again and keeps the same.
        """
        with taking_turns(self.path / MODELS_LOCK):
            self._keep_if_best(cell, record, save)

    def _keep_if_best(self, cell: Cell, record: Table, save: Callable[[Path], None]) -> None:
        note, model = self.models / f"{cell.row}.json", self.models / cell.row
        if model.is_dir() and (not cell.collapsed, cell.score, -cell.seed) <= rank_of(note, cell.metric):
            return
        fresh, old = (self.models / f"{cell.row}.{state}{PARTIAL}" for state in ("new", "old"))
        save(fresh)
        try:
            if model.exists():
                model.rename(old)
            fresh.rename(model)
        except OSError as error:
            raise CheckpointError(f"{model}: the model cannot be put in place ({error.strerror}).") from error
        write_text(note, json.dumps({**record, "collapsed": cell.collapsed}, indent=1, ensure_ascii=False))
        shutil.rmtree(old, ignore_errors=True)


def rank_of(note: Path, metric: str) -> tuple[bool, float, int]:
    """(did not collapse, score, less its seed) of the model that a note describes: the larger, the better."""
    try:
        record = json.loads(note.read_text(encoding="utf-8"))
        return not record.get("collapsed", False), float(record[metric]), -int(record["seed"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False, -1.0, 0  # no whole note: whatever comes is better


def shown(leaves: Table, key: str) -> str:
    if key not in leaves:
        return "absent"
    text = repr(leaves[key])
    return text if len(text) <= 60 else f"{text[:57]}..."
