"""The estimator for semantic roles: `RoleLabeler`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headstart.config import Table, overlay
from headstart.errors import DataError
from headstart.tasks.base import Task
from headstart.tasks.role_inputs import sentences_of_text
from headstart.tasks.role_json import in_order, labelled_predicate, named_predicate, predicate_as_json
from headstart.tasks.role_reading import overlap_notice
from headstart.tasks.roles import Predicate, Roles, RoleSentence, overlap_notes
from headstart.tasks.spans import Span
from headstart.tasks.srl import Srl
from headstart.transfer.estimator_base import TransferEstimator, plain
from headstart.transfer.estimator_input import Words, check_equal, checked_sentences, rows_of
from headstart.transfer.task_model import TaskModel
from headstart.weights.sources import Source

LABELLED = "a list of its predicates, such as {'word': 3, 'arguments': [{'role': 'ARG0', 'start': 0, 'end': 1}]}"
GIVEN = "a list of the words that are predicates, such as [3, 7]"


class RoleLabeler(TransferEstimator):
    """Carries a pretrained encoder over to semantic roles: who did what to whom.

    A sentence is a list of words. Its predicates are a list of dictionaries, one for each, [] if there are none:

        {"word": 3, "arguments": [{"role": "ARG0", "start": 0, "end": 2}, ...]}

    Words are counted from 0, and `end` is the word after the last. V, the predicate itself, may be left out. In place
    of `arguments` a predicate may have BIO `tags`, or be the list of these tags: `word` is then the one with B-V.

    The parameters are those of `TextClassifier`, without `pool`; and decoder: "crf" or "constrained".

    After `fit`: `roles_`, the roles that are learned; `task_model_`; `scores_`, `mix_`, `n_iter_`.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Srl

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

    def fit(self, sentences: Iterable[Words], predicates: Iterable[Any]) -> RoleLabeler:
        whole, overlapping = labelled_sentences(sentences, predicates)
        if overlapping:
            warnings.warn(overlap_notice(overlapping), UserWarning, stacklevel=2)
        seed = self._seed()
        train, dev = self._hold_out(whole, self.validation_fraction, seed)
        task = Srl.learn(whole)
        self._fit(task, train, dev, seed)
        self.roles_ = task.class_names
        return self

    def predict(
        self, sentences: Iterable[Words | str], predicates: Iterable[Any] | None = None
    ) -> list[list[dict[str, Any]]]:
        """The predicates of each sentence or text, in the form that `fit` takes, with the text of each argument.

        A string is split into sentences and words first; `start` and `end` are then its characters, and the words are
        `first_word` and `end_word`, counted from the beginning of the string.

        predicates: of each sentence the words that are predicates, or dictionaries with `word`; None: they are found.
        """
        check_is_fitted(self, "task_model_")
        if predicates is not None:
            examples = asked_sentences(sentences, predicates)
            parts = [[example] for example in examples]
        else:
            parts = [
                sentences_of_text(found.text, found.where)
                if found.text is not None
                else [RoleSentence(found.words, None, found.where)]
                for found in checked_sentences(sentences)
            ]
        answers = iter(self._answers([part for own in parts for part in own]))
        return [found_in(own, [next(answers) for _ in own]) for own in parts]

    def score(self, sentences: Iterable[Words], predicates: Iterable[Any]) -> float:
        """F1 of the arguments as CoNLL's scorer counts it; which words are predicates is given."""
        check_is_fitted(self, "task_model_")
        return self._primary_score(labelled_sentences(sentences, predicates)[0], self.task_model_.task)

    def _about(self) -> Table:
        return {"roles": self.roles_}

    def _restore(self, loaded: TaskModel[Any, Any], about: Table) -> None:
        super()._restore(loaded, about)
        self.roles_ = loaded.task.class_names

    def _chosen(self) -> Table:
        return overlay(super()._chosen(), {"network": {"decoder": self.decoder}})


def labelled_sentences(sentences: Iterable[Words], predicates: Iterable[Any]) -> tuple[list[RoleSentence], list[str]]:
    """Every predicate with its arguments, and a phrase for each argument that was left out because it overlaps."""
    found: list[RoleSentence] = []
    overlapping: list[str] = []
    for sentence, given in with_predicates(sentences, predicates, LABELLED):
        words, where = sentence.words, sentence.where
        if given is None:
            raise DataError(f"{where} must have {LABELLED}, and [] if there are none; got None.")
        labelled = [labelled_predicate(one, words, where) for one in given]
        overlapping += [note for one, left in labelled for note in overlap_notes(left, one.word, words, where)]
        found.append(replace(sentence, predicates=in_order([one for one, _ in labelled], words, where)))
    return found, overlapping


def asked_sentences(sentences: Iterable[Words | str], predicates: Iterable[Any]) -> list[RoleSentence]:
    """With the predicates that are given; those of a sentence with None are not known."""
    found = []
    for sentence, given in with_predicates(sentences, predicates, GIVEN):
        if given is None:
            found.append(sentence)
            continue
        named = [
            named_predicate({"word": one} if isinstance(one, int) else one, sentence.words, sentence.where)
            for one in given
        ]
        found.append(replace(sentence, predicates=in_order(named, sentence.words, sentence.where)))
    return found


def with_predicates(
    sentences: Iterable[Words | str], predicates: Iterable[Any], each: str
) -> list[tuple[RoleSentence, list[Any] | None]]:
    """Sentences and what is given of their predicates, as plain values. each: what is wanted of each sentence."""
    found = checked_sentences(sentences)
    rows = rows_of(predicates, "the predicates of each sentence", each)
    check_equal(len(found), len(rows), "sentence", "predicate list")
    pairs = []
    for number, (sentence, row) in enumerate(zip(found, rows, strict=True), 1):
        where = f"Sentence {number:,}"
        if sentence.text is not None:
            raise DataError(f"{where} must be a list of words, because predicates and arguments count words; got text.")
        if row is not None and (isinstance(row, str | Mapping) or not isinstance(row, Iterable)):
            raise DataError(f"{where} must have {each}; got {row!r:.60}.")
        given = None if row is None else [as_object(one) for one in row]
        pairs.append((RoleSentence(sentence.words, None, where), given))
    return pairs


def as_object(given: Any) -> Any:
    """A predicate as JSON has it."""
    if isinstance(given, Predicate):
        arguments = [{"role": role, "start": start, "end": end} for start, end, role in given.arguments or ()]
        return {**asdict(given), "arguments": arguments}
    value = plain(given.tolist() if isinstance(given, np.ndarray) else given)
    return {"tags": value} if isinstance(value, list) else value


def found_in(sentences: list[RoleSentence], answers: list[Roles]) -> list[dict[str, Any]]:
    """The predicates of a text's sentences, whose words are counted from the beginning of the text."""
    ends = accumulate(len(sentence.words) for sentence in sentences)
    whole = RoleSentence(
        tuple([word for sentence in sentences for word in sentence.words]),
        None,
        text=sentences[0].text if sentences else None,
        offsets=tuple([place for sentence in sentences for place in sentence.offsets or ()]),
    )
    return [
        predicate_as_json(whole, moved(predicate, end - len(sentence.words)))
        for sentence, end, answer in zip(sentences, ends, answers, strict=True)
        for predicate in answer.predicates
    ]


def moved(predicate: Predicate, by: int) -> Predicate:
    arguments = tuple([Span(start + by, end + by, role) for start, end, role in predicate.arguments or ()])
    return replace(predicate, word=predicate.word + by, arguments=arguments)
