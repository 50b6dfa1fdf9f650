"""Questions about a context, and their answers: places in the context, checked to be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from headstart.errors import DataError, Remedy
from headstart.tasks.shown import shortened
from headstart.text.formats import without_surrogates
from headstart.text.tables import listed_columns

Version = Literal["1.1", "2.0"]
"""Of SQuAD's rules: in 2.0 a question may have no answer."""
ValueT = TypeVar("ValueT")
SPOKEN: dict[type, str] = {str: "text", list: "a list", int: "a whole number"}
SKIP_BAD = Remedy("Correct it, or leave such questions out with {}.", "skip_bad=true", "--skip-bad")


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A piece of the context, and the character at which it starts."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a context. answers: None if it is not labelled; () if the context does not answer it."""

    id: str
    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None = None
    where: str = field(default="", compare=False)
    """Its file, and its line or id, for messages."""
    title: str = field(default="", compare=False)
    record: Mapping[str, object] | None = field(default=None, compare=False)
    """The whole JSON line that `predict` read, for the keys that it copies to its output."""


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """The questions of one file. skipped: one sentence for each question that was left out."""

    questions: list[Question]
    version: Version
    skipped: list[str]


@dataclass(frozen=True, slots=True)
class Found:
    """A question as the file has it. answers: (text, start) of each, unchecked; no start: to be searched for."""

    question: Question
    answers: list[tuple[str, int | None]]
    position: str
    """Its place in the file, which no other question has, even if both have one id."""


def answers_in(asked: Mapping[str, Any], key: str, where: str) -> list[tuple[str, int | None]]:
    """The answers of a question, in any of the forms that the readers know."""
    impossible = asked.get("is_impossible")
    if not isinstance(impossible, bool | None):
        raise DataError(f"{where}: 'is_impossible' must be true or false, got {impossible!r:.60}.")
    if key not in asked and not impossible:
        there = listed_columns(list(asked))
        raise DataError(f"{where}: has no '{key}'; there are: {there}. Only `predict` reads questions without them.")
    answers = listed_answers(asked.get(key), key, where)
    if impossible and answers:
        raise DataError(f"{where}: 'is_impossible' is true, but there are answers ({answers[0][0]!r:.60}). Remove one.")
    return [(without_surrogates(text), start) for text, start in answers]


def listed_answers(given: object, key: str, where: str) -> list[tuple[str, int | None]]:
    if given is None:
        return []
    if isinstance(given, dict) and isinstance(given.get("text"), list):  # as Hugging Face's datasets have them
        texts, starts = member(given, "text", list, where), member(given, "answer_start", list, where)
        if len(texts) != len(starts):
            raise DataError(f"{where}: {len(texts)} answers have {len(starts)} values of 'answer_start'.")
        given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    if isinstance(given, str | dict):
        given = [given]
    if not isinstance(given, list):
        raise DataError(
            f"{where}: '{key}' must be a list of answers, each with 'text' and 'answer_start', or a list of texts; got "
            f"{given!r:.60}."
        )
    return [
        (one, None)
        if isinstance(one, str)
        else (member(one, "text", str, where), member(one, "answer_start", int, where))
        for one in given
    ]


def checked(found: Iterable[Found], skip_bad: bool) -> tuple[list[Question], list[str]]:
    """Questions with the answers that are in their contexts, and what is wrong with those left out.

    skip_bad: a question stays if one of its answers is good. Without it, any bad answer is an error.
    """
    questions: list[Question] = []
    skipped: list[str] = []
    for question, answers in with_own_ids(found):
        good: list[GoldAnswer] = []
        fault = None
        for text, given in answers:
            start = question.context.find(text) if given is None else given
            wrong = fault_of(question.context, text, given)
            if wrong is None:
                good.append(GoldAnswer(text, start))
                continue
            fault = fault or f"{question.where} ({shortened(question.question, 100)!r}): {wrong}."
            if not skip_bad:
                raise DataError(fault, SKIP_BAD)
        if good or fault is None:
            questions.append(replace(question, answers=tuple(good), record=None))
        else:
            skipped.append(fault)
    return questions, skipped


def with_own_ids(found: Iterable[Found]) -> Iterator[tuple[Question, list[tuple[str, int | None]]]]:
    """Questions and their answers; predictions are written and scored by id, so each id may occur once."""
    positions: dict[str, str] = {}
    for one in found:
        first = positions.setdefault(one.question.id, one.position)
        if first != one.position:
            raise DataError(
                f"{one.position}: has the id '{one.question.id}', which {first} has, too. Give each its own id."
            )
        yield one.question, one.answers


def fault_of(context: str, text: str, start: int | None) -> str | None:
    """What is wrong with an answer; None if it stands in the context where it says."""
    if not text.strip():
        return "an answer is empty; a question without answer has an empty list of answers"
    place = context.find(text)
    if start is None:
        return None if place >= 0 else f"the answer {text!r:.100} does not occur in the context"
    if start >= 0 and context.startswith(text, start):
        return None
    there = f"where {context[start : start + len(text)]!r:.100} stands"
    if not 0 <= start < len(context):
        there = f"which has {len(context):,} characters"
    elsewhere = f"it occurs at character {place}" if place >= 0 else "it does not occur anywhere in it"
    return f"the answer {text!r:.100} is not at character {start} of the context, {there}; {elsewhere}"


def mixed_versions(train: Sequence[Question], dev: Sequence[Question]) -> str | None:
    """A notice if only the training questions have some without answer; the other way round is an error."""
    unlearnt = [question for question in dev if question.answers == ()]
    learnt = sum(question.answers == () for question in train)
    if unlearnt and not learnt:
        raise DataError(
            f"{unlearnt[0].where}: has no answer, as {len(unlearnt):,} of the {len(dev):,} validation questions (SQuAD "
            f"2.0), but every training question has one (SQuAD 1.1), so the model cannot learn when to give none. "
            f"Train on questions of both kinds, or take those without answer out of the validation file."
        )
    if learnt and not unlearnt:
        return (
            f"{learnt:,} of the {len(train):,} training questions have no answer (SQuAD 2.0), but all validation "
            f"questions have one (SQuAD 1.1): the scores do not show how well the model leaves questions unanswered."
        )
    return None


def member(value: object, key: str, kind: type[ValueT], where: str) -> ValueT:
    """value[key], of which the structure of the file says that it is there and of this kind."""
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object with '{key}', got {value!r:.60}.")
    if key not in value:
        raise DataError(f"{where}: has no '{key}'; there are: {listed_columns(list(value))}.")
    found = value[key]
    if not isinstance(found, kind) or isinstance(found, bool):  # a bool is an int in Python
        raise DataError(f"{where}: '{key}' must be {SPOKEN[kind]}, got {found!r:.60}.")
    return found
