"""A run directory: config, tokenizer, weights, log and card, and the checkpoints to go on from after a kill."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from torch import Tensor

from headstart.atomic import PARTIAL, make_folder, sha256_of, sync, write_text
from headstart.checksums import SUMS, check_sums
from headstart.config import Table, read_toml, to_toml
from headstart.errors import CheckpointError
from headstart.training.saved_tensors import SavedTensors
from headstart.training.tensors import write_tensors

KEPT_CHECKPOINTS = 2
LOCK = "lock"
SHARD = re.compile(r"shard-\d+-of-\d+\.safetensors")
WEIGHTS = "weights.safetensors"
RESUME = "Checkpoints saved before are intact. Make room there, and resume the run."


@dataclass(frozen=True, slots=True)
class CheckpointNote:
    """Where a checkpoint stands. Everything else about a step follows from its number."""

    steps: int = 0
    elapsed: float = 0.0
    units: int = 0
    best: float | None = None
    best_step: int = 0
    log_bytes: int = 0
    began: float = 0.0
    """Seconds that had gone into reading the text when training began."""


def shard_name(rank: int, world: int) -> str:
    return f"shard-{rank + 1:05d}-of-{world:05d}.safetensors"


HALF = (f"*{PARTIAL}", ".tmp??????")
"""Names of files that are being written: ours, and those that safetensors renames to ours."""
NOTE_SUM = "note_sha256"
"""The checksum of a checkpoint's note, itself left out."""


def sum_of(fields: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class RunDirectory:
    """config.toml, tokenizer, weights.safetensors, log.jsonl, CARD.md, and state/ with the checkpoints."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / "state"
        self.weights = path / WEIGHTS
        self.best = self.state / "best.safetensors"
        self.log_file = path / "log.jsonl"

    @classmethod
    def create(cls, path: Path, *, resumable: bool = True) -> RunDirectory:
        """A new, empty run. What is there already is never written over. resumable: its command has --resume."""
        if path.is_file():
            raise CheckpointError(f"{path}: is a file; --out names the folder of the run.")
        if not cls.holds_nothing(path) and (resumable or not cls.holds_half_a_task(path)):
            what = "already holds a run" if (path / "config.toml").exists() else "is not empty and not a run"
            advice = "Go on with --resume, or give another --out." if resumable else "Give another --out."
            raise CheckpointError(f"{path}: {what}. {advice}")
        try:
            make_folder(path / "state")
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be made ({error.strerror}). Give another --out.") from error
        return cls(path)

    @classmethod
    def open(cls, path: Path, *, made_anew: Collection[str] = ()) -> RunDirectory:
        """A run that is there, its files as they were written. made_anew: files that the caller writes again."""
        if not (path / "config.toml").is_file():
            why = "there is no such folder" if not path.exists() else "is not a run directory: it has no config.toml"
            raise CheckpointError(f"{path}: {why}.")
        check_sums(path, made_anew=made_anew)
        return cls(path)

    @classmethod
    def holds_nothing(cls, path: Path) -> bool:
        """Nothing was written yet: a run killed before its configuration was saved leaves at most this."""
        if not path.exists():
            return True
        if not path.is_dir():
            return False
        names = {entry.name for entry in path.iterdir()}
        return not (names - {"state"} - {name for name in names if name.endswith(PARTIAL)})

    @staticmethod
    def holds_half_a_task(path: Path) -> bool:
        """What a fit leaves that was killed while it was saved: the results come first, the checksums last, and only a
        fit that ends takes its lock away. (One that is at work has it.)"""
        state = path / "state"
        begun = (path / "results.json").is_file() and state.is_dir() and os.listdir(state) == [LOCK]
        return begun and not (path / SUMS).exists()

    def remove_if_empty(self) -> None:
        """Remove the folders of a run that failed before anything was written into them."""
        for folder in (self.state, self.path):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def discard(self) -> None:
        """Remove the files of a job that failed, from a folder that was empty when it began. Used inside `locked`."""
        for path in self.path.iterdir():
            if path.is_dir() and path != self.state:
                shutil.rmtree(path)
            elif path != self.state:
                path.unlink()

    def write_config(self, table: Mapping[str, object]) -> None:
        write_text(self.path / "config.toml", to_toml(table))

    def read_config(self) -> Table:
        return read_toml(self.path / "config.toml")

    def write_card(self, text: str) -> None:
        write_text(self.path / "CARD.md", text)

    def write_weights(self, weights: Mapping[str, Tensor]) -> None:
        write_tensors(self.weights, weights)

    def log(self, record: Mapping[str, object]) -> None:
        line = json.dumps(record, ensure_ascii=False) + "\n"
        try:
            with self.log_file.open("ab") as file:
                file.write(line.encode("utf-8"))
        except OSError as error:
            raise CheckpointError(f"{self.log_file}: cannot be written ({error.strerror}). {RESUME}") from error

    def sync_log(self) -> None:
        """Wait until the lines so far are on the disk, and the file's name: a checkpoint counts on them."""
        if self.log_file.is_file():
            try:
                sync(self.log_file)
                sync(self.path)
            except OSError as error:
                raise CheckpointError(f"{self.log_file}: cannot be written ({error.strerror}). {RESUME}") from error

    def log_bytes(self) -> int:
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def rewind_log(self, log_bytes: int) -> None:
        """Remove the lines after the checkpoint: their steps are done again."""
        if self.log_file.exists() and not self.log_file.is_file():
            raise CheckpointError(f"{self.log_file}: is not a file; move it away, and the run goes on with a new log.")
        if self.log_bytes() > log_bytes:
            try:
                os.truncate(self.log_file, log_bytes)
            except OSError as error:
                raise CheckpointError(f"{self.log_file}: cannot be written ({error.strerror}).") from error

    def save(self, progress: CheckpointNote, state: Mapping[str, Tensor]) -> None:
        """Write a checkpoint: the tensors first, then the note with their checksum, which makes it valid."""
        tensors, _ = self._files(progress.steps)
        write_tensors(tensors, state, RESUME)
        self._note(progress, sha256_of(tensors))

    def save_shards(self, progress: CheckpointNote, write: Callable[[Path], dict[str, str]]) -> None:
        """The same where each process writes a part. write: puts all parts into a folder; their checksums by name."""
        folder = self._folder(progress.steps)
        sums = write(folder)
        self._note(progress, sums)
        for file in folder.iterdir():
            if file.name not in sums:  # of another number of processes
                file.unlink()

    def _note(self, progress: CheckpointNote, sums: str | dict[str, str]) -> None:
        self.sync_log()
        fields = {**asdict(progress), "sha256": sums}
        _, note = self._files(progress.steps)
        write_text(note, json.dumps({**fields, NOTE_SUM: sum_of(fields)}, indent=1), RESUME)
        for steps in self._saved_steps()[KEPT_CHECKPOINTS:]:
            for file in reversed(self._files(steps)):
                with suppress(OSError):  # an old checkpoint that cannot be removed does no harm
                    file.unlink(missing_ok=True)
            shutil.rmtree(self._folder(steps), ignore_errors=True)

    @contextmanager
    def locked(self, *, new: bool = False) -> Iterator[None]:
        """Keep other processes off this run, and remove what a killed one left half-written.

        new: this process has just created the run; it is refused if another one has filled the folder since.
        Where there is nothing in state/ but the lock at the end, as in a task's run, both are removed.
        """
        with self._lock_file():
            if new and self.holds_half_a_task(self.path):
                self.discard()
            if new and not self.holds_nothing(self.path):
                raise CheckpointError(f"{self.path}: another process has written a run there. Give another --out.")
            left = [path for name in HALF for path in (*self.path.glob(name), *self.state.rglob(name))]
            for partial in left:
                with suppress(OSError):
                    partial.unlink()
            try:
                yield
            finally:
                if self.state.is_dir() and os.listdir(self.state) == [LOCK]:
                    (self.state / LOCK).unlink()
                    self.state.rmdir()

    def _lock_file(self) -> IO[str]:
        """The open lock file, which this process holds until it is closed."""
        while True:
            try:
                self.state.mkdir(parents=True, exist_ok=True)
                file = (self.state / LOCK).open("w")
            except FileNotFoundError:  # the process that had it has just removed the folder
                continue
            except OSError as error:
                raise CheckpointError(f"{self.state}: cannot be written ({error.strerror}).") from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise CheckpointError(
                    f"{self.path}: another process is at work on this run; wait for it, or give another --out."
                ) from error
            except OSError as error:
                file.close()
                raise CheckpointError(
                    f"{self.path}: its file system cannot lock files ({error.strerror}). Give another --out."
                ) from error
            # A file that was removed between `open` and `flock` excludes nobody: only the one in place counts.
            try:
                in_place = os.path.samestat(os.fstat(file.fileno()), (self.state / LOCK).stat())
            except FileNotFoundError:
                in_place = False
            if in_place:
                return file
            file.close()

    def restore(self) -> tuple[CheckpointNote, SavedTensors | None, list[str]]:
        """The newest whole checkpoint (None: there is none yet), and a sentence for each broken one passed over."""
        saved = self._saved_steps()
        broken: list[str] = []
        for steps in saved:
            try:
                return *self._read(steps), [f"{why} Going on from the one before it." for why in broken]
            except CheckpointError as error:
                broken.append(str(error))
        if saved:
            what = "its only checkpoint is broken" if len(saved) == 1 else f"all {len(saved)} checkpoints are broken"
            raise CheckpointError(
                f"{self.path}: cannot go on, because {what}: {broken[0]} Start the run again in another --out."
            )
        return CheckpointNote(), None, []

    def _read(self, steps: int) -> tuple[CheckpointNote, SavedTensors]:
        tensors, note = self._files(steps)
        try:
            fields = json.loads(note.read_text(encoding="utf-8"))
            noted = fields.pop(NOTE_SUM, None)  # None: written by an earlier version
            if noted not in (None, sum_of(fields)):
                raise ValueError("its checksum does not match")
            sums = fields.pop("sha256")
            expected = {tensors: sums}
            if isinstance(sums, dict):
                expected = {self._folder(steps) / SHARD.fullmatch(name)[0]: sums[name] for name in sums}  # type: ignore[index]
            progress = CheckpointNote(**fields)
            if not all(isinstance(value, int | float | None) for value in fields.values()):
                raise ValueError("a field is not a number")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"{note}: the checkpoint's note is broken.") from error
        for file, total in expected.items():
            if not file.is_file() or sha256_of(file) != total:
                raise CheckpointError(f"{file}: the checkpoint is broken (its checksum does not match its note).")
        return progress, SavedTensors(list(expected))

    def _files(self, steps: int) -> tuple[Path, Path]:
        stem = f"step-{steps:09d}"
        return self.state / f"{stem}.safetensors", self.state / f"{stem}.json"

    def _folder(self, steps: int) -> Path:
        """For a checkpoint that several processes wrote."""
        return self.state / f"step-{steps:09d}"

    def _saved_steps(self) -> list[int]:
        """Newest first."""
        names = (re.fullmatch(r"step-(\d+)", note.stem) for note in self.state.glob("step-*.json"))
        return sorted((int(name[1]) for name in names if name), reverse=True)
