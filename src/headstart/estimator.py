"""Estimators with a head start, as scikit-learn knows them: fit, predict, score, get_params, clone, pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from headstart.config import Table
from headstart.errors import ConfigError, DataError
from headstart.tasks.base import Task
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.examples import held_out_rows
from headstart.tasks.spans import spans_of
from headstart.tasks.tag import Tag, entity
from headstart.transfer.classifier import Classifier
from headstart.transfer.estimator_base import TransferEstimator, network_table
from headstart.transfer.estimator_input import (
    Texts,
    Words,
    as_array,
    check_pairs,
    checked_sentences,
    checked_share,
    checked_texts,
    classes_of,
    label_texts,
    tagged_sentences,
)
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source

Pair = tuple[Texts, Iterable[Any]]


class TextClassifier(ClassifierMixin, TransferEstimator):  # type: ignore[misc]
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
    Parameters: ClassVar[tuple[str, ...]] = (
        *("pretrained", "how", "mix", "cell", "pool", "epochs", "min_steps", "batch_size", "learning_rate"),
        *("validation_fraction", "settings", "random_state", "cache"),
    )

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
        validation_data: Pair | None = None,
        batch: int | None = None,
        validation: float | Pair | None = None,
        seed: int | None = None,
    ) -> None:
        self.pretrained = pretrained
        self.how = how
        self.mix = mix
        self.cell = cell
        self.pool = pool
        self.epochs = epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.random_state = random_state
        self.cache = cache
        self.validation_data = validation_data
        self.batch = batch
        self.validation = validation
        self.seed = seed

    def fit(self, texts: Texts, labels: Iterable[Any]) -> TextClassifier:
        """labels: numbers or strings, one for each text."""
        values = as_array(labels)
        classes = classes_of(values)
        names = tuple(str(value) for value in classes.tolist())
        given = checked_texts(texts)
        check_pairs(len(given), len(values))
        pairs = zip(given, label_texts(values, classes), strict=True)
        whole = [TextExample(text, label) for text, label in pairs]
        seed = self._seed()
        train, dev = self._split(whole, classes, seed)
        self._fit(Classify(names), train, dev, seed)
        self.classes_ = classes
        return self

    @property
    def classifier_(self) -> Classifier:
        check_is_fitted(self, "task_model_")
        return Classifier(self.task_model_)

    def predict(self, texts: Texts) -> NDArray[Any]:
        """The most probable class of each text."""
        # The probabilities first: before `fit` they say what is wrong, and there are no classes yet.
        best = self.predict_proba(texts).argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[best]
        return predicted

    def predict_proba(self, texts: Texts) -> NDArray[np.float32]:
        """(texts, classes), in the order of `classes_`."""
        check_is_fitted(self, "task_model_")
        return self.classifier_.predict_proba(checked_texts(texts))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array, tags.input_tags.string = True, False, True
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("validation"), tuple | list):  # pickled when one parameter held either
            state = {**state, "validation_data": state["validation"], "validation": None}
        super().__setstate__(state)

    def _about(self) -> Table:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _restore(self, loaded: TaskModel[Any, Any], about: Table) -> None:
        super()._restore(loaded, about)
        labels = loaded.task.to_table()["labels"]
        self.classes_ = np.array(about.get("classes", labels), dtype=about.get("dtype"))

    def _table(self) -> Table:
        fitting = {
            "epochs": self.epochs,
            "min_steps": self.min_steps,
            "batch": self._renamed("batch", self.batch_size),
            "learning_rate": self.learning_rate,
        }
        chosen = {"mix": {"kind": self.mix}, "network": {"cell": self.cell, "pool": self.pool}, "fitting": fitting}
        return network_table(chosen, self.settings)

    def _split(
        self, whole: list[TextExample], classes: NDArray[Any], seed: int
    ) -> tuple[list[TextExample], list[TextExample] | None]:
        """What is trained on, and what finds the best step."""
        given = self._renamed("validation", self.validation_fraction)
        data = given if isinstance(given, tuple | list) else self.validation_data
        if data is not None:
            if not isinstance(data, tuple | list) or len(data) != 2:
                raise ConfigError(f"validation_data is a pair (texts, labels); got {data!r:.60}.")
            held_texts, held_labels = checked_texts(data[0]), as_array(data[1])
            check_pairs(len(held_texts), len(held_labels))
            if not held_texts:
                raise DataError("validation_data holds no text. Leave it out, or give at least one.")
            pairs = zip(held_texts, label_texts(held_labels, classes), strict=True)
            return whole, [TextExample(text, label) for text, label in pairs]
        share = checked_share(given)
        held = held_out_rows([str(example.label) for example in whole], share, seed)
        rest = [example for row, example in enumerate(whole) if row not in held]
        return rest, [whole[row] for row in sorted(held)] if held else None


class Tagger(TransferEstimator):
    """Carries a pretrained encoder over to tagged sentences: named entities, parts of speech.

    A sentence is a list of words; its tags are a list of strings, one per word, in IOB1, BIO, BIOES, BILOU or plain.
    The parameters are those of `TextClassifier`, and decoder: "crf" or "constrained".

    After `fit`: `labels_`, the tags that are learned; `task_model_`; `scores_`, `mix_`, `n_iter_`.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Tag
    Parameters: ClassVar[tuple[str, ...]] = (
        *("pretrained", "how", "mix", "cell", "decoder", "epochs", "min_steps", "batch_size", "learning_rate"),
        *("validation_fraction", "settings", "random_state", "cache"),
    )

    def __init__(
        self,
        pretrained: Source | list[Source] = "scratch",
        how: str = "frozen",
        mix: str | None = None,
        cell: str | None = None,
        decoder: str | None = None,
        epochs: float | None = None,
        min_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        validation_fraction: float = 0.1,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        cache: str | Path | None = None,
    ) -> None:
        self.pretrained = pretrained
        self.how = how
        self.mix = mix
        self.cell = cell
        self.decoder = decoder
        self.epochs = epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.random_state = random_state
        self.cache = cache

    def fit(self, sentences: Iterable[Words], tags: Iterable[Words]) -> Tagger:
        whole = tagged_sentences(sentences, tags)
        seed = self._seed()
        held = held_out_rows([""] * len(whole), checked_share(self.validation_fraction), seed)
        train = [example for row, example in enumerate(whole) if row not in held]
        task = Tag.learn(whole)
        self._fit(task, train, [whole[row] for row in sorted(held)] if held else None, seed)
        self.labels_ = list(task.labels)
        return self

    def predict(self, sentences: Iterable[Words | str]) -> list[list[str]]:
        """The tags of each sentence's words. A string is split into words first; `entities` tells where they are."""
        return [list(answer.tags) for answer in self._answers(checked_sentences(sentences))]

    def entities(self, texts: Iterable[Words | str]) -> list[list[dict[str, Any]]]:
        """The entities of each text: type, text, and where they are (characters of a string, words of a list)."""
        examples = checked_sentences(texts)
        answers = self._answers(examples)
        return [
            [entity(example, *span) for span in spans_of(answer.tags)]
            for example, answer in zip(examples, answers, strict=True)
        ]

    def score(self, sentences: Iterable[Words], tags: Iterable[Words]) -> float:
        """Entity F1, or accuracy for plain tags."""
        check_is_fitted(self, "task_model_")
        examples = tagged_sentences(sentences, tags)
        task = self.task_model_.task
        return task.metric.of(task.all_counts(examples, self._answers(examples)))

    def _answers(self, examples: Sequence[TaggedSentence]) -> list[Any]:
        check_is_fitted(self, "task_model_")
        return self.task_model_.answers(examples).answers

    def _about(self) -> Table:
        return {"labels": self.labels_}

    def _restore(self, loaded: TaskModel[Any, Any], about: Table) -> None:
        super()._restore(loaded, about)
        self.labels_ = list(loaded.task.to_table()["labels"])

    def _table(self) -> Table:
        fitting = {
            "epochs": self.epochs,
            "min_steps": self.min_steps,
            "batch": self.batch_size,
            "learning_rate": self.learning_rate,
        }
        network = {"cell": self.cell, "decoder": self.decoder}
        return network_table({"mix": {"kind": self.mix}, "network": network, "fitting": fitting}, self.settings)
