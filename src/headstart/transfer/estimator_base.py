"""What the estimators of all tasks share: parameters, fitting, saving, pickling through a run directory."""

from __future__ import annotations

import json
import tempfile
import warnings
from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from headstart.atomic import write_text
from headstart.config import Table, overlay
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.progress import result_of
from headstart.tasks.base import Task
from headstart.tasks.examples import held_out_rows
from headstart.training.run import RunDirectory
from headstart.transfer.estimator_input import checked_share
from headstart.transfer.fit import Fitted, gather_features, transfer_once
from headstart.transfer.loading import load_task_model
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source

ABOUT = "estimator.json"
FILES = "files"
RENAMED = {"seed": "random_state", "batch": "batch_size", "validation": "validation_fraction"}
"""Parameters by the names that they had; they go on working, with a warning."""
NOT_SAVED = {"validation_data", *RENAMED}
"""Parameters that estimator.json does not keep."""
LARGEST_SEED = 2**31 - 1
ExampleT = TypeVar("ExampleT")


class TransferEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Carries a pretrained encoder over to labelled examples.

    scikit-learn finds the parameters in the signature of each subclass, so that each repeats these and adds its own.
    """

    task_kind: ClassVar[type[Task[Any, Any]]]

    def __init__(
        self,
        pretrained: Source | list[Source],
        how: str,
        mix: str | None,
        cell: str | None,
        epochs: float | None,
        min_steps: int | None,
        batch_size: int | None,
        learning_rate: float | None,
        validation_fraction: float,
        settings: Mapping[str, Any] | None,
        random_state: int | np.random.RandomState | None,
        cache: str | Path | None,
    ) -> None:
        self.pretrained = pretrained
        self.how = how
        self.mix = mix
        self.cell = cell
        self.epochs = epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.random_state = random_state
        self.cache = cache

    def _fit(self, task: Task[Any, Any], train: Sequence[Any], dev: Sequence[Any] | None, seed: int) -> Fitted:
        start = open_start(self.pretrained)
        config = settings_for(self.task_kind, start, self.how, settings_table(self._chosen(), self.settings))
        cache = None if self.cache is None else Path(self.cache)
        features = None
        with torch.enable_grad():  # the host may have turned gradients off
            if config.how == "frozen":
                # In one order whatever is held out, so that every candidate of a search finds the same features.
                every = sorted([*train, *(dev or ())], key=lambda example: (task.key(example), repr(example)))
                features = result_of(gather_features(start, task, every, config, cache))
            fitted = result_of(
                transfer_once(start, config, task, train, dev, seed=seed, features=features, cache=cache)
            )
        self.task_model_: TaskModel[Any, Any] = fitted.model
        self.scores_ = fitted.scores
        self.mix_ = fitted.mix
        self.n_iter_ = fitted.steps
        return fitted

    def _chosen(self) -> Table:
        """The settings of the transfer from the parameters; None is left out."""
        fitting = {
            "epochs": self.epochs,
            "min_steps": self.min_steps,
            "batch": self._renamed("batch", self.batch_size),
            "learning_rate": self.learning_rate,
        }
        return {"mix": {"kind": self.mix}, "network": {"cell": self.cell}, "fitting": fitting}

    def _hold_out(
        self, whole: Sequence[ExampleT], share: object, seed: int
    ) -> tuple[list[ExampleT], list[ExampleT] | None]:
        """The examples to train on, and those that find the best step; None if none are held out."""
        held = held_out_rows([self._stratum(example) for example in whole], checked_share(share), seed)
        rest = [example for row, example in enumerate(whole) if row not in held]
        return rest, [whole[row] for row in sorted(held)] if held else None

    def _stratum(self, example: Any) -> str:
        """The same share of every stratum is held out."""
        return self.task_kind.stratum(example)

    def _answers(self, examples: Sequence[Any]) -> list[Any]:
        check_is_fitted(self, "task_model_")
        return self.task_model_.answers(examples).answers

    def _primary_score(self, examples: Sequence[Any], rules: Task[Any, Any]) -> float:
        """The primary metric on labelled examples. rules: the task that counts what is right."""
        if not examples:
            raise DataError(f"There are no {rules.many} to score. Give at least one.")
        return rules.metric.of(rules.all_counts(examples, self._answers(examples)))

    def _seed(self) -> int:
        """A number from random_state: itself, a draw from a RandomState, or any number where it is None."""
        given = self._renamed("seed", self.random_state)
        if given is None:
            return int(np.random.default_rng().integers(LARGEST_SEED))
        if isinstance(given, np.random.RandomState):
            return int(given.randint(LARGEST_SEED))
        if isinstance(given, bool) or not isinstance(given, int | np.integer):
            raise ConfigError(f"random_state is a whole number, a numpy RandomState or None; got {given!r:.60}.")
        return int(given)

    def _renamed(self, old: str, value: Any) -> Any:
        """The value of a parameter, also where it was given by its old name."""
        given = getattr(self, old, None)
        if given is None:
            return value
        warnings.warn(f"'{old}' is now called '{RENAMED[old]}'; the old name goes soon.", FutureWarning, stacklevel=4)
        return given

    def save(self, path: str | Path) -> None:
        """Into a new folder, which is also a run directory for `headstart`. Validation data are not kept."""
        check_is_fitted(self, "task_model_")
        folder = Path(path)
        if not RunDirectory.holds_nothing(folder):
            raise CheckpointError(
                f"{folder}: is not empty, and nothing is written over. Give the path of a new folder."
            )
        parameters = self.get_params(deep=False).items()
        kept = {name: plain(value) for name, value in parameters if name not in NOT_SAVED}
        if isinstance(self.pretrained, tuple):  # one encoder in several files; a list is several encoders
            kept["pretrained"] = {FILES: kept["pretrained"]}
        about = {"parameters": kept, "scores": self.scores_, "mix": self.mix_, "steps": self.n_iter_, **self._about()}
        try:
            text = json.dumps(about, indent=1, ensure_ascii=False)
        except TypeError as error:
            raise ConfigError(f"The settings of this estimator cannot be written as JSON ({error}).") from error
        write_text(folder / ABOUT, text + "\n")
        save_task_model(self.task_model_, folder, dict(self.scores_))

    def _about(self) -> Table:
        """What else estimator.json keeps."""
        return {}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` left in a folder. Other runs of the same task can be loaded, too."""
        folder = Path(path)
        loaded = load_task_model(folder)
        if type(loaded.task) is not cls.task_kind:  # a task that is derived from it may answer in another way
            raise CheckpointError(f"{folder}: is a model for {loaded.task.title}, not for {cls.task_kind.title}.")
        about = read_about(folder / ABOUT)
        estimator = cls(**known_parameters(about.get("parameters", {}), cls._defaults()))
        estimator._restore(loaded, about)
        return estimator

    def _restore(self, loaded: TaskModel[Any, Any], about: Table) -> None:
        self.task_model_ = loaded
        self.scores_ = about.get("scores", {})
        self.mix_ = about.get("mix", loaded.model.mix_weights()[0])
        self.n_iter_ = about.get("steps", 0)

    def __getstate__(self) -> dict[str, Any]:
        """Tensors are not pickled: a fitted model travels as the bytes of its run directory."""
        state: dict[str, Any] = dict(super().__getstate__())
        model = state.pop("task_model_", None)
        if model is not None:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                save_task_model(model, folder, {})
                # Encoders side by side have their tokenizers in folders of their own.
                paths = (path for path in folder.rglob("*") if path.is_file())
                state["files"] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.get("files")
        kept = {name: value for name, value in state.items() if name != "files"}
        for old, new in RENAMED.items():  # pickled before the names changed
            if new not in kept and old in kept:
                kept[new] = kept.pop(old)
        super().__setstate__(kept)
        for name, default in self._defaults().items():
            self.__dict__.setdefault(name, default)
        if files is not None:
            with tempfile.TemporaryDirectory() as name:
                write_files(Path(name), files)
                self.task_model_ = load_task_model(name)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        kind: Any = cls  # every subclass has a default for every parameter
        return dict(kind().get_params(deep=False))


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """The files of a run directory, by their places in it; a place outside the folder is cut to its last part."""
    for place, content in files.items():
        path = folder / place
        if not path.resolve().is_relative_to(folder.resolve()):
            path = folder / path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def settings_table(chosen: Table, settings: Mapping[str, Any] | None) -> Table:
    """The settings of a transfer: what the parameters choose, then `settings`, which wins."""
    if settings is not None and not isinstance(settings, Mapping):
        raise ConfigError(f"settings is a dictionary such as {{'network': {{'width': 50}}}}; got {settings!r:.60}.")
    found: Table = plain(overlay(without_none(chosen), settings or {}))
    return found


def without_none(table: Table) -> Table:
    """Also in its sections."""
    given = {name: value for name, value in table.items() if value is not None}
    return {name: without_none(value) if isinstance(value, dict) else value for name, value in given.items()}


def known_parameters(parameters: Table, known: Collection[str]) -> Table:
    """Saved parameters by their present names; a file of an earlier version has the old ones."""
    renamed = {RENAMED.get(name, name): value for name, value in parameters.items()}
    pretrained = renamed.get("pretrained")
    if isinstance(pretrained, dict):
        renamed["pretrained"] = tuple(pretrained[FILES])
    return {name: value for name, value in renamed.items() if name in known and name not in NOT_SAVED}


def plain(value: Any) -> Any:
    """Settings as Python's own values: paths, and numbers that come out of numpy's arrays, are not."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def read_about(path: Path) -> Table:
    if not path.is_file():
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is broken ({error}). Fit and save the estimator again.") from error
    if not isinstance(about, dict):
        raise CheckpointError(f"{path}: is broken (not a JSON object). Fit and save the estimator again.")
    return about
