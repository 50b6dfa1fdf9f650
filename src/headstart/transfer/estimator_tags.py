"""The estimator for tagged sentences: `Tagger`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headstart.config import Table, overlay
from headstart.tasks.base import Task
from headstart.tasks.spans import spans_of
from headstart.tasks.tag import Tag, entity
from headstart.transfer.estimator_base import TransferEstimator
from headstart.transfer.estimator_input import Words, checked_sentences, tagged_sentences
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source


class Tagger(TransferEstimator):
    """Carries a pretrained encoder over to tagged sentences: named entities, parts of speech.

    A sentence is a list of words; its tags are a list of strings, one per word, in IOB1, BIO, BIOES, BILOU or plain.
    The parameters are those of `TextClassifier`, and decoder: "crf" or "constrained".

    After `fit`: `labels_`, the tags that are learned; `task_model_`; `scores_`, `mix_`, `n_iter_`.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Tag

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
        fitting = epochs, min_steps, batch_size, learning_rate
        super().__init__(pretrained, how, mix, cell, *fitting, validation_fraction, settings, random_state, cache)
        self.decoder = decoder

    def fit(self, sentences: Iterable[Words], tags: Iterable[Words]) -> Tagger:
        whole = tagged_sentences(sentences, tags)
        seed = self._seed()
        train, dev = self._hold_out(whole, self.validation_fraction, seed)
        task = Tag.learn(whole)
        self._fit(task, train, dev, seed)
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
        return self._primary_score(tagged_sentences(sentences, tags), self.task_model_.task)

    def _about(self) -> Table:
        return {"labels": self.labels_}

    def _restore(self, loaded: TaskModel[Any, Any], about: Table) -> None:
        super()._restore(loaded, about)
        self.labels_ = list(loaded.task.to_table()["labels"])

    def _chosen(self) -> Table:
        return overlay(super()._chosen(), {"network": {"decoder": self.decoder}})
