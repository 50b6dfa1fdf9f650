"""The estimator for questions about contexts: `QuestionAnswerer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headstart.config import Table
from headstart.errors import ConfigError
from headstart.tasks.answer_search import Answered
from headstart.tasks.base import Task, of_class
from headstart.tasks.qa import Qa
from headstart.tasks.questions import Question
from headstart.transfer.estimator_base import TransferEstimator
from headstart.transfer.estimator_input import Questions, answered_questions, checked_questions
from headstart.weights.sources import Source


class QuestionAnswerer(TransferEstimator):
    """Carries a pretrained encoder over to questions whose answers are parts of a context (SQuAD).

    A question is (question, context), or a dictionary with these keys. An answer is a string, of which the first
    occurrence in the context counts, or (text, start), or {"text": ..., "answer_start": ...}; a list of these if
    several are right; None or "" if the context has none. If any has none, the model learns to leave questions
    unanswered (SQuAD 2.0).

    The parameters are those of `TextClassifier`, without `pool`; and longest: tokens in one sequence; stride: tokens
    that two neighbouring windows of a long context share.

    After `fit`: `task_model_`; `scores_` on the held-out questions; `mix_`, `n_iter_`.
    """

    task_kind: ClassVar[type[Task[Any, Any]]] = Qa

    def __init__(
        self,
        pretrained: Source | list[Source] = "scratch",
        how: str = "frozen",
        mix: str | None = None,
        cell: str | None = None,
        longest: int | None = None,
        stride: int | None = None,
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
        self.stride = stride

    def fit(self, questions: Questions, answers: Iterable[Any]) -> QuestionAnswerer:
        """answers: one for each question, in any of the forms above."""
        whole = answered_questions(questions, answers)
        seed = self._seed()
        train, dev = self._hold_out(whole, self.validation_fraction, seed)
        self._fit(Qa.learn(whole), train, dev, seed)
        return self

    def predict(self, questions: Questions) -> list[str]:
        """The answer to each question as its context has it; "" is no answer."""
        return [answer.text for answer in self._answers(checked_questions(questions))]

    def answers(self, questions: Questions, n_best: int = 1) -> list[list[dict[str, Any]]]:
        """The best answers to each question: text, start, end and probability, where text is context[start:end].

        The first is the one of `predict`, the others follow by probability; up to 20 are known. No answer has an empty
        text, and None for start and end.
        """
        if isinstance(n_best, bool) or not isinstance(n_best, int | np.integer) or n_best < 1:
            raise ConfigError(f"n_best is a whole number, at least 1; got {n_best!r:.60}.")
        return [ranked(answer)[:n_best] for answer in self._answers(checked_questions(questions))]

    def score(self, questions: Questions, answers: Iterable[Any]) -> float:
        """The mean F1 of the words of each answer, as SQuAD's scorers compute it."""
        check_is_fitted(self, "task_model_")
        examples = answered_questions(questions, answers)
        rules = of_class(Qa, self.task_model_.task)
        if not all(example.answers for example in examples):
            # By the rules of 2.0, a model that always answers is wrong where there is no answer: an ordinary low score
            # for cross-validation, in which a fold may have been trained without such questions.
            rules = replace(rules, version="2.0")
        return self._primary_score(examples, rules)

    def _stratum(self, example: Question) -> str:
        """Questions with and without an answer are held out in proportion."""
        return "answered" if example.answers else "unanswered"

    def _chosen(self) -> Table:
        return {**super()._chosen(), "longest": self.longest, "stride": self.stride}


def ranked(answer: Answered) -> list[dict[str, Any]]:
    """The answer given, then the others by probability; among them no answer, if the model may give none."""
    listed: list[dict[str, Any]] = [
        {"text": one.text, "start": one.start, "end": one.end, "probability": float(one.probability)}
        for one in answer.best
    ]
    if answer.null_score is not None or not listed:
        # The probabilities of all candidates and of no answer sum to one.
        rest = 1 - sum(one["probability"] for one in listed) if answer.null_score is not None else 0.0
        listed.append({"text": "", "start": None, "end": None, "probability": max(0.0, rest)})
    given = answer.start if answer.text else None, answer.end if answer.text else None
    return sorted(listed, key=lambda one: ((one["start"], one["end"]) != given, -one["probability"]))
