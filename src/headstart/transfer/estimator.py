"""A text classifier with a head start, as scikit-learn knows classifiers: fit, predict, get_params, pickle."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart.atomic import write_text
from headstart.config import Table, nearest, overlay
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.progress import result_of
from headstart.tasks.examples import Examples, held_out_rows
from headstart.text.formats import clean
from headstart.training.run import RunDirectory
from headstart.transfer.fit import gather_features, transfer_once
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_model import load_classifier

ABOUT = "estimator.json"
Texts = Iterable[str]
Pair = tuple[Texts, Iterable[Any]]
ResultT = TypeVar("ResultT")


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Carries a pretrained encoder over to labelled texts. Works in Pipeline, cross_val_score and GridSearchCV.

    pretrained: the folder of a pretrained run, or "scratch" to start from nothing.
    how: "frozen", "finetune" or "gradual" (from the top layer down); nothing to choose when starting from scratch.
    mix, cell, pool, epochs, min_steps, batch, learning_rate: None takes what suits the start and `how`.
    validation: the share of the texts held out to find the best step; 0 keeps the last step; or (texts, labels).
    settings: any other setting, such as {"network": {"width": 50}}; it wins over those above.
    seed: decides every random draw.
    cache: the folder for a frozen encoder's features, which are computed once for each set of texts.

    After `fit`: `classes_`; `classifier_`; `scores_` on the held-out texts; `mix_`, the learned weights of the layers;
    `n_iter_`, the steps taken.
    """

    def __init__(
        self,
        pretrained: str | Path = "scratch",
        how: str = "frozen",
        mix: str | None = None,
        cell: str | None = None,
        pool: str | None = None,
        epochs: float | None = None,
        min_steps: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        validation: float | Pair = 0.1,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        cache: str | Path | None = None,
    ) -> None:
        self.pretrained = pretrained
        self.how = how
        self.mix = mix
        self.cell = cell
        self.pool = pool
        self.epochs = epochs
        self.min_steps = min_steps
        self.batch = batch
        self.learning_rate = learning_rate
        self.validation = validation
        self.settings = settings
        self.seed = seed
        self.cache = cache

    def fit(self, texts: Texts, labels: Iterable[Any]) -> TextClassifier:
        """labels: numbers or strings, one for each text."""
        values = as_array(labels)
        classes = classes_of(values)
        names = [str(value) for value in classes.tolist()]
        whole = Examples(checked_texts(texts), label_texts(values, classes))
        train, dev = self._split(whole, classes)
        start = open_start(self.pretrained)
        config = settings_for(start, self.how, self._settings())
        cache = None if self.cache is None else Path(self.cache)
        features = None
        if config.how == "frozen":
            # In one order whatever is held out, so that every candidate of a search finds the same features.
            every = sorted({*train.texts, *(dev.texts if dev else ())})
            features = result_of(gather_features(start, every, config, cache))
        fitted = result_of(
            transfer_once(start, config, train, dev, names, seed=int(self.seed), features=features, cache=cache)
        )
        self.classes_ = classes
        self.classifier_ = fitted.classifier
        self.scores_ = fitted.scores
        self.mix_ = fitted.mix
        self.n_iter_ = fitted.steps
        return self

    def predict(self, texts: Texts) -> NDArray[Any]:
        """The most probable class of each text."""
        # The probabilities first: before `fit` they say what is wrong, and there are no classes yet.
        best = self.predict_proba(texts).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def predict_proba(self, texts: Texts) -> NDArray[np.float32]:
        """(texts, classes), in the order of `classes_`."""
        check_is_fitted(self, "classifier_")
        probabilities: NDArray[np.float32] = self.classifier_.predict_proba(checked_texts(texts))
        return probabilities

    def save(self, path: str | Path) -> None:
        """Into a new folder, which is also a run directory for `headstart`. A pair given as validation is not kept."""
        check_is_fitted(self, "classifier_")
        folder = Path(path)
        if not RunDirectory.holds_nothing(folder):
            raise CheckpointError(
                f"{folder}: is not empty, and nothing is written over. Give the path of a new folder."
            )
        parameters = {name: plain(value) for name, value in self.get_params(deep=False).items()}
        if isinstance(self.validation, tuple | list):
            del parameters["validation"]
        about = {
            "parameters": parameters,
            "classes": self.classes_.tolist(),
            "dtype": self.classes_.dtype.str,
            "scores": self.scores_,
            "mix": self.mix_,
            "steps": self.n_iter_,
        }
        try:
            text = json.dumps(about, indent=1, ensure_ascii=False)
        except TypeError as error:
            raise ConfigError(f"The settings of this classifier cannot be written as JSON ({error}).") from error
        write_text(folder / ABOUT, text + "\n")
        self.classifier_.save(folder, dict(self.scores_))

    @classmethod
    def load(cls, path: str | Path) -> TextClassifier:
        """What `save` left in a folder. Other classifiers of `headstart` can be loaded too; their classes are text."""
        folder = Path(path)
        classifier = load_classifier(folder)
        about = read_about(folder / ABOUT)
        estimator = cls(**about.get("parameters", {}))
        estimator.classes_ = np.array(about.get("classes", classifier.labels), dtype=about.get("dtype"))
        estimator.classifier_ = classifier
        estimator.scores_ = about.get("scores", {})
        estimator.mix_ = about.get("mix", classifier.model.mix_weights())
        estimator.n_iter_ = about.get("steps", 0)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.string = True, False, True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Tensors are not pickled: a fitted classifier travels as the bytes of its run directory."""
        state: dict[str, Any] = dict(super().__getstate__())
        classifier = state.pop("classifier_", None)
        if classifier is not None:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                classifier.save(folder, {})
                state["files"] = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.get("files")
        super().__setstate__({name: value for name, value in state.items() if name != "files"})
        if files is not None:
            with tempfile.TemporaryDirectory() as name:
                for place, content in files.items():
                    # A run directory is flat: a name that leads elsewhere is cut to its last part.
                    (Path(name) / Path(place).name).write_bytes(content)
                self.classifier_ = load_classifier(name)

    def _settings(self) -> Table:
        chosen: Table = {
            "mix": {"kind": self.mix},
            "network": {"cell": self.cell, "pool": self.pool},
            "fitting": {
                "epochs": self.epochs,
                "min_steps": self.min_steps,
                "batch": self.batch,
                "learning_rate": self.learning_rate,
            },
        }
        given = {
            section: {name: value for name, value in table.items() if value is not None}
            for section, table in chosen.items()
        }
        return plain(overlay(given, self.settings or {}))  # type: ignore[no-any-return]

    def _split(self, whole: Examples, classes: NDArray[Any]) -> tuple[Examples, Examples | None]:
        """What is trained on, and what finds the best step."""
        validation = self.validation
        if isinstance(validation, Real) and not isinstance(validation, bool):
            if not 0 <= validation < 1:
                raise ConfigError(f"validation is a share of the texts, from 0 to below 1; got {validation}.")
            held = held_out_rows(whole.labels, float(validation), int(self.seed))
            rest = [row for row in range(len(whole)) if row not in held]
            return whole.take(rest), whole.take(sorted(held)) if held else None
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ConfigError(f"validation is a share of the texts or a pair (texts, labels); got {validation!r:.60}.")
        texts, labels = validation
        return whole, Examples(checked_texts(texts), label_texts(as_array(labels), classes))


def checked_texts(texts: Texts) -> list[str]:
    if isinstance(texts, str | bytes):
        raise DataError("A list of texts is wanted, and one text was given. Put it in a list.")
    found = list(texts)
    for number, text in enumerate(found, 1):
        if not isinstance(text, str):
            raise DataError(f"Text {number:,} of {len(found):,} is not a string; got {text!r:.60}.")
        if not text.strip():
            raise DataError(f"Text {number:,} of {len(found):,} is empty. Leave it out, or fill it in.")
    return [clean(str(text)) for text in found]


def classes_of(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct labels in order, in their own type."""
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        raise DataError("Labels are classes: whole numbers or strings. Got numbers with fractions, or NaN.")
    try:
        classes: NDArray[Any] = np.unique(values)
    except TypeError as error:
        raise DataError("Labels are either all numbers or all strings; got a mixture, or missing ones.") from error
    if len(classes) < 2:
        raise DataError(f"At least two classes are needed; got {len(classes)} in {len(values):,} labels.")
    return classes


def label_texts(labels: NDArray[Any], classes: NDArray[Any]) -> list[str]:
    """The labels as the classifier names them; one that is not among `classes` is an error."""
    names = {value: str(value) for value in classes.tolist()}
    values = labels.tolist()
    for number, value in enumerate(values, 1):
        if value not in names:
            raise DataError(
                f"Label {number:,} of the validation pair, {value!r}, is not one of the classes in training."
                f"{nearest(str(value), names.values())}"
            )
    return [names[value] for value in values]


def as_array(labels: Iterable[Any]) -> NDArray[Any]:
    values: NDArray[Any] = np.asarray(labels if hasattr(labels, "__array__") else list(labels))
    if values.ndim != 1:
        raise DataError(f"Labels come as one list, one for each text; got an array of shape {values.shape}.")
    return values


def plain(value: Any) -> Any:
    """Settings as Python's own values: numbers that come out of numpy's arrays, and paths, are not."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def read_about(path: Path) -> Table:
    if not path.is_file():
        return {}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: is broken ({error}). Fit and save the classifier again.") from error
    if not isinstance(about, dict):
        raise CheckpointError(f"{path}: is broken (not a JSON object). Fit and save the classifier again.")
    return about
