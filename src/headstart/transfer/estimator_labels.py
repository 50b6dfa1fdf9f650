"""The estimators whose answer is one label: `TextClassifier` and `PairClassifier`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart.config import Table, overlay
from headstart.errors import ConfigError, DataError
from headstart.tasks.base import Task
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample
from headstart.transfer.classifier import Classifier
from headstart.transfer.estimator_base import TransferEstimator
from headstart.transfer.estimator_input import (
    Pairs,
    Texts,
    as_array,
    check_equal,
    checked_pairs,
    checked_texts,
    classes_of,
    label_texts,
)
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source

LabelledTexts = tuple[Texts, Iterable[Any]]
LabelledPairs = tuple[Pairs, Iterable[Any]]


class LabelEstimator(ClassifierMixin, TransferEstimator):  # type: ignore[misc]
    """Carries a pretrained encoder over to examples with one label each. After `fit`: `classes_`, in their own type."""

    one: ClassVar[str]
    """What an example is called in messages."""
    validation_data: tuple[Any, Iterable[Any]] | None
    classes_: NDArray[Any]

    @abstractmethod
    def _examples(self, inputs: Any) -> list[Any]:
        """What the user gave, checked, as examples without labels."""

    def _fit_labels(self, inputs: Any, labels: Iterable[Any]) -> Self:
        values = as_array(labels, self.one)
        classes = classes_of(values, self.one)
        whole = self._labelled(inputs, values, classes)
        seed = self._seed()
        train, dev = self._split(whole, classes, seed)
        task = self.task_kind.from_table({"labels": [str(value) for value in classes.tolist()]})
        self._fit(task, train, dev, seed)
        self.classes_ = classes
        return self

    def _labelled(self, inputs: Any, values: NDArray[Any], classes: NDArray[Any]) -> list[Any]:
        examples = self._examples(inputs)
        check_equal(len(examples), len(values), self.one)
        names = label_texts(values, classes)
        return [replace(example, label=name) for example, name in zip(examples, names, strict=True)]

    def _split(self, whole: list[Any], classes: NDArray[Any], seed: int) -> tuple[list[Any], list[Any] | None]:
        """The examples to train on, and those that find the best step."""
        given = self._renamed("validation", self.validation_fraction)
        data = given if isinstance(given, tuple | list) else self.validation_data
        if data is None:
            return self._hold_out(whole, given, seed)
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise ConfigError(f"validation_data is a pair ({self.one}s, labels); got {data!r:.60}.")
        dev = self._labelled(data[0], as_array(data[1], self.one), classes)
        if not dev:
            raise DataError(f"validation_data holds no {self.one}. Leave it out, or give at least one.")
        return whole, dev

    def _predict(self, inputs: Any) -> NDArray[Any]:
        # The probabilities first: before `fit` they say what is wrong, and there are no classes yet.
        best = self._probabilities(inputs).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def _probabilities(self, inputs: Any) -> NDArray[np.float32]:
        """(examples, classes), in the order of `classes_`."""
        check_is_fitted(self, "task_model_")
        answers = self._answers(self._examples(inputs))
        rows = [answer.probabilities for answer in answers]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def _about(self) -> Table:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _restore(self, loaded: TaskModel[Any, Any], about: Table) -> None:
        super()._restore(loaded, about)
        self.classes_ = np.array(about.get("classes", loaded.task.class_names), dtype=about.get("dtype"))


class TextClassifier(LabelEstimator):
    """Carries a pretrained encoder over to labelled texts. Works in Pipeline, cross_val_score and GridSearchCV.

    pretrained: whatever `headstart.load` opens, a list of such to put side by side, or "scratch" for nothing.
    how: "frozen", "finetune" or "gradual" (from the top layer down); nothing to choose when starting from scratch.
    mix, cell, pool, epochs, min_steps, batch_size, learning_rate: None takes what suits the start and `how`.
    validation_fraction: the share of the texts held out to find the best step; 0 keeps the last step.
    validation_data: (texts, labels) to find the best step on instead.
    settings: any other setting, such as {"network": {"width": 50}}; it wins over those above.
    random_state: decides every random draw.
    cache: the folder for a frozen encoder's features, which are computed once for each set of texts.
    batch, validation, seed: the old names of batch_size, validation_fraction and random_state.

    After `fit`: `classes_`; `classifier_`; `scores_` on the held-out texts; `mix_`, the learned weights of the layers;
    `n_iter_`, the steps taken.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Classify
    one: ClassVar[str] = "text"

    def __init__(
        self,
        pretrained: Source | list[Source] = "scratch",
        how: str = "frozen",
        mix: str | None = None,
        cell: str | None = None,
        pool: str | None = None,
        epochs: float | None = None,
        min_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        validation_fraction: float = 0.1,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        cache: str | Path | None = None,
        *,
        validation_data: LabelledTexts | None = None,
        batch: int | None = None,
        validation: float | LabelledTexts | None = None,
        seed: int | None = None,
    ) -> None:
        fitting = epochs, min_steps, batch_size, learning_rate
        super().__init__(pretrained, how, mix, cell, *fitting, validation_fraction, settings, random_state, cache)
        self.pool = pool
        self.validation_data = validation_data
        self.batch = batch
        self.validation = validation
        self.seed = seed

    def fit(self, texts: Texts, labels: Iterable[Any]) -> TextClassifier:
        """labels: numbers or strings, one for each text."""
        return self._fit_labels(texts, labels)

    @property
    def classifier_(self) -> Classifier:
        check_is_fitted(self, "task_model_")
        return Classifier(self.task_model_)

    def predict(self, texts: Texts) -> NDArray[Any]:
        """The most probable class of each text."""
        return self._predict(texts)

    def predict_proba(self, texts: Texts) -> NDArray[np.float32]:
        """(texts, classes), in the order of `classes_`."""
        return self._probabilities(texts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("validation"), tuple | list):  # pickled when one parameter held either
            state = {**state, "validation_data": state["validation"], "validation": None}
        super().__setstate__(state)

    def _examples(self, inputs: Texts) -> list[TextExample]:
        return [TextExample(text) for text in checked_texts(inputs)]

    def _chosen(self) -> Table:
        return overlay(super()._chosen(), {"network": {"pool": self.pool}})


class PairClassifier(LabelEstimator):
    """Carries a pretrained encoder over to labelled pairs of texts: does one follow from the other, or say the same?

    A pair is a tuple or a list of two strings; an array or a table with two columns is read by its rows.
    The parameters are those of `TextClassifier`, without `pool`.

    After `fit`: `classes_`; `task_model_`; `scores_` on the held-out pairs; `mix_`, `n_iter_`.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Pair
    one: ClassVar[str] = "pair"

    def __init__(
        self,
        pretrained: Source | list[Source] = "scratch",
        how: str = "frozen",
        mix: str | None = None,
        cell: str | None = None,
        epochs: float | None = None,
        min_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        validation_fraction: float = 0.1,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        cache: str | Path | None = None,
        *,
        validation_data: LabelledPairs | None = None,
    ) -> None:
        fitting = epochs, min_steps, batch_size, learning_rate
        super().__init__(pretrained, how, mix, cell, *fitting, validation_fraction, settings, random_state, cache)
        self.validation_data = validation_data

    def fit(self, pairs: Pairs, labels: Iterable[Any]) -> PairClassifier:
        """labels: numbers or strings, one for each pair."""
        return self._fit_labels(pairs, labels)

    def predict(self, pairs: Pairs) -> NDArray[Any]:
        """The most probable class of each pair."""
        return self._predict(pairs)

    def predict_proba(self, pairs: Pairs) -> NDArray[np.float32]:
        """(pairs, classes), in the order of `classes_`."""
        return self._probabilities(pairs)

    def _examples(self, inputs: Pairs) -> list[PairExample]:
        return checked_pairs(inputs)
