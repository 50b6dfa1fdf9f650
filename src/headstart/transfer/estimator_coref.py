"""The estimator for coreference: `CorefResolver`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headstart.config import Table, overlay
from headstart.errors import DataError
from headstart.tasks.base import Task
from headstart.tasks.coref import Coref
from headstart.tasks.coref_documents import CorefDocument
from headstart.tasks.coref_jsonl import CHAINS, chains_of, document_of
from headstart.tasks.coref_text import document_of_text
from headstart.tasks.coref_writers import mention_as_json
from headstart.text.formats import without_surrogates
from headstart.transfer.estimator_base import TransferEstimator, plain
from headstart.transfer.estimator_input import check_equal
from headstart.weights.sources import Source

Document = Sequence[Sequence[str]]
"""Sentences, each a list of words."""


class CorefResolver(TransferEstimator):
    """Carries a pretrained encoder over to coreference: which words of a document refer to the same entity.

    A document is a list of sentences, each a list of words. Its chains are a list with a list of mentions for each
    entity; a mention is (first word, end), without end, counted from 0 over the whole document.

    The parameters are those of `TextClassifier`, without `pool`; and longest: tokens in one window of a long document;
    singletons: whether a mention that no other refers to is a chain, None: if the documents of `fit` have such.

    After `fit`: `task_model_`; `scores_` on the held-out documents; `mix_`, `n_iter_`.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Coref

    def __init__(
        self,
        pretrained: Source | list[Source] = "scratch",
        how: str = "frozen",
        mix: str | None = None,
        cell: str | None = None,
        longest: int | None = None,
        singletons: bool | None = None,
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
        self.longest = longest
        self.singletons = singletons

    def fit(self, documents: Iterable[Document], chains: Iterable[Any]) -> CorefResolver:
        whole = resolved_documents(documents, chains)
        seed = self._seed()
        train, dev = self._hold_out(whole, self.validation_fraction, seed)
        self._fit(Coref.learn(whole), train, dev, seed)
        return self

    def predict(self, documents: Iterable[Document | str]) -> list[list[list[Any]]]:
        """The chains of each document, as `fit` takes them.

        A string is split into sentences and words first; its mentions are dictionaries with their text, and its
        characters as start and end.
        """
        examples = checked_documents(documents)
        pairs = zip(examples, self._answers(examples), strict=True)
        return [[[mention(example, *one) for one in chain] for chain in answer.chains] for example, answer in pairs]

    def score(self, documents: Iterable[Document], chains: Iterable[Any]) -> float:
        """CoNLL F1: the mean of MUC, B-cubed and CEAF-e."""
        check_is_fitted(self, "task_model_")
        return self._primary_score(resolved_documents(documents, chains), self.task_model_.task)

    def _chosen(self) -> Table:
        own = {"longest": self.longest, "network": {"singletons": self.singletons}}
        return overlay(super()._chosen(), own)


def mention(document: CorefDocument, first: int, end: int) -> Any:
    return (first, end) if document.text is None else mention_as_json(document, first, end)


def listed(value: Any) -> Any:
    """Lists of plain values from lists, tuples and arrays."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return [listed(inner) for inner in value] if isinstance(value, list | tuple) else plain(value)


def checked_documents(documents: Iterable[Document | str]) -> list[CorefDocument]:
    if documents is None or isinstance(documents, str | bytes):
        raise DataError(
            "A list of documents is wanted, each a list of sentences or a string. Put a single one in a list."
        )
    found: list[CorefDocument] = []
    for number, given in enumerate(documents, 1):
        where = f"Document {number:,}"
        if isinstance(given, str):
            found.append(document_of_text(without_surrogates(given), where.lower(), where))
            continue
        sentences = listed(given)
        if not isinstance(sentences, list) or not all(isinstance(sentence, list) for sentence in sentences):
            raise DataError(f"{where} must be a list of sentences, each a list of words; got {given!r:.60}.")
        found.append(document_of({"sentences": sentences}, where, where.lower(), labelled=False))
    return found


def resolved_documents(documents: Iterable[Document], chains: Iterable[Any]) -> list[CorefDocument]:
    found = checked_documents(documents)
    rows = [] if chains is None else [listed(row) for row in chains]
    check_equal(len(found), len(rows), "document", "chain list")
    for example in found:
        if example.text is not None:
            raise DataError(f"{example.where} is a string; chains are those of words, so give its sentences as lists.")
    return [
        replace(example, chains=chains_of({CHAINS: row}, len(example.words), example.where))
        for example, row in zip(found, rows, strict=True)
    ]
