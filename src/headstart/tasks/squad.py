"""Questions about a context and where their answers stand in it: SQuAD 1.1 and 2.0 files, and JSON lines.

Answers are places in the context, so context, question and answers keep every character as it is in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import model_validator

from headstart.config import Section
from headstart.errors import DataError, Remedy
from headstart.tasks.reading import choose_column
from headstart.text.files import Source, decode
from headstart.text.formats import text_of, without_surrogates
from headstart.text.tables import json_object, listed_columns

Version = Literal["1.1", "2.0"]
ValueT = TypeVar("ValueT")
SQUAD = (".json", ".json.gz")
JSON_LINES = (".jsonl", ".jsonl.gz")
CONTEXT_FIELDS = ("context", "passage", "text")
QUESTION_FIELDS = ("question",)
ANSWERS_FIELDS = ("answers", "answer")
VERSION_2 = re.compile(r"v?2(\.[0-9]+)*", re.IGNORECASE)
SPOKEN: dict[type, str] = {str: "text", list: "a list", int: "a whole number"}
SKIP_BAD = Remedy("Correct it, or leave such questions out with {}.", "skip_bad=true", "--skip-bad")
SET_CONTEXT = Remedy("Name the key with the context with {}.", "context_field=NAME", "--context-field")
SET_QUESTION = Remedy("Name the key with the question with {}.", "question_field=NAME", "--question-field")


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


class QaInputConfig(Section):
    """How files of questions are read."""

    skip_bad: bool = False
    """Leave out questions whose answer is not in their context."""

    context_field: str | None = None
    """JSON lines: the key with the context; unset: 'context', 'passage' or 'text'."""

    question_field: str | None = None
    """JSON lines: the key with the question; unset: 'question'."""

    answers_field: str | None = None
    """JSON lines: the key with the answers; unset: 'answers' or 'answer'."""

    @model_validator(mode="after")
    def different_fields(self) -> QaInputConfig:
        given = [name for name in (self.context_field, self.question_field, self.answers_field) if name is not None]
        if len(set(given)) < len(given):
            raise ValueError(
                f"--context-field, --question-field and --answers-field must differ; got {', '.join(given)}"
            )
        return self


# --- reading ----------------------------------------------------------------------------------------------------------


def read_questions(path: Path, config: QaInputConfig) -> QuestionFile:
    """The labelled questions of a SQuAD file (.json) or of JSON lines (.jsonl), also with .gz."""
    name = path.name.lower()
    declared = False
    if name.endswith(SQUAD):
        document = squad_document(path)
        declared = VERSION_2.fullmatch(str(document.get("version", ""))) is not None
        questions, skipped = checked(in_articles(document, path), config.skip_bad)
    elif name.endswith(JSON_LINES):
        with Source(path) as source:
            questions, skipped = checked(in_json_lines(source, source.lines(), config), config.skip_bad)
    else:
        raise DataError(
            f"{path}: files of this kind hold no questions with answers; known are {', '.join(SQUAD + JSON_LINES)}."
        )
    if not questions:
        left = f": all {len(skipped):,} were left out, because no answer is in its context" if skipped else ""
        raise DataError(f"{path}: holds no question{left}. Give a file with at least one question.")
    unanswerable = any(not question.answers for question in questions)
    return QuestionFile(questions, "2.0" if declared or unanswerable else "1.1", skipped)


def squad_document(path: Path) -> dict[str, Any]:
    """A SQuAD file as JSON; of its structure, only the outermost object is checked."""
    with Source(path) as source:
        content = decode(source.read(-1), str(path), path.name)
    if not content.strip():
        raise DataError(f"{path}: is empty. Give a SQuAD file, which is one JSON object with 'data'.")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: not JSON ({error}). A SQuAD file is one JSON object; it may be cut short, or, if each line is an "
            f"object of its own, should be called .jsonl."
        ) from error
    if not isinstance(document, dict):
        raise DataError(
            f"{path}: expected a JSON object with 'data', as SQuAD files have, got {document!r:.60}. Questions without "
            f"articles can be given as JSON lines (.jsonl)."
        )
    return document


def in_articles(document: Mapping[str, Any], path: Path, labelled: bool = True) -> Iterator[Found]:
    """The questions of a SQuAD file, in its order. labelled: read their answers, which may otherwise be missing."""
    number = 0
    for a, article in enumerate(member(document, "data", list, str(path)), 1):
        for p, paragraph in enumerate(member(article, "paragraphs", list, f"{path}, article {a}"), 1):
            place = f"{path}, article {a}, paragraph {p}"
            context = without_surrogates(member(paragraph, "context", str, place))
            for q, asked in enumerate(member(paragraph, "qas", list, place), 1):
                number += 1
                position = f"{place}, question {q}"
                text = member(asked, "question", str, position)
                id = id_of(asked, f"question {number}", position)
                where = f"{path}, question '{id}'" if asked.get("id") is not None else position
                question = replace(new_question(id, text, context, where), title=title_of(article))
                yield Found(question, answers_in(asked, "answers", where) if labelled else [], position)


class Fields(NamedTuple):
    """Which keys of JSON lines hold what. answers: None where they are not read."""

    context: str
    question: str
    answers: str | None


def in_json_lines(
    source: Source, lines: Iterable[str], config: QaInputConfig, labelled: bool = True
) -> Iterator[Found]:
    """The questions of JSON lines, one at a time. lines: those of the source. The first one tells the fields' names."""
    fields: Fields | None = None
    for line in lines:
        if not line.strip():
            continue
        position = f"{source.path}:{source.line}"
        record = json_object(line, position)
        fields = fields or choose_fields(record, config, position, labelled)
        for name in fields:
            if name is not None and name not in record:
                there = listed_columns(list(record))
                raise DataError(f"{position}: has no key '{name}'; there are: {there}. Every line needs it.")
        id = id_of(record, f"line {source.line}", position)
        where = position if record.get("id") is None else f"{position}, question '{id}'"
        text = text_of(record[fields.question], fields.question, where, SET_QUESTION)
        context = without_surrogates(text_of(record[fields.context], fields.context, where, SET_CONTEXT))
        answers = [] if fields.answers is None else answers_in(record, fields.answers, where)
        yield Found(replace(new_question(id, text, context, where, record), title=title_of(record)), answers, position)


def choose_fields(record: Mapping[str, Any], config: QaInputConfig, where: str, labelled: bool) -> Fields:
    if isinstance(record.get("data"), list):
        raise DataError(f"{where}: is a whole SQuAD file in one line. Give it as a file whose name ends in .json.")
    names = list(record)
    context = choose_column(config.context_field, CONTEXT_FIELDS, names, where, "--context-field")
    question = choose_column(config.question_field, QUESTION_FIELDS, names, where, "--question-field")
    answers = None
    if labelled:
        answers = choose_column(config.answers_field, ANSWERS_FIELDS, names, where, "--answers-field")
    if len({context, question, answers}) < 3:
        raise DataError(
            f"{where}: context, question and answers must be under three keys; got {context}, {question}, {answers}. "
            f"Name them with --context-field, --question-field and --answers-field."
        )
    return Fields(context, question, answers)


def new_question(
    id: str, question: str, context: str, where: str, record: Mapping[str, object] | None = None
) -> Question:
    """A question without its answers, and neither text empty. The context comes without surrogates: many share it."""
    for name, text in (("question", question), ("context", context)):
        if not text.strip():
            raise DataError(f"{where}: the {name} is empty. Fill it in, or take this question out.")
    return Question(id, without_surrogates(question), context, where=where, record=record)


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


def id_of(asked: Mapping[str, Any], otherwise: str, where: str) -> str:
    """A question's id; one without gets its place in the file, which is the same at every reading."""
    id = asked.get("id")
    if id is None:
        return otherwise
    if not isinstance(id, str | int) or isinstance(id, bool) or id == "":
        raise DataError(f"{where}: 'id' must be text or a whole number, got {id!r:.60}.")
    return without_surrogates(str(id))


def title_of(value: Mapping[str, Any]) -> str:
    title = value.get("title")
    return without_surrogates(title) if isinstance(title, str) else ""


# --- answers ----------------------------------------------------------------------------------------------------------


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
            fault = fault or f"{question.where} ({question.question!r:.100}): {wrong}."
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


# --- writing ----------------------------------------------------------------------------------------------------------


def squad_json(questions: Sequence[Question], version: Version) -> dict[str, Any]:
    """Questions in SQuAD's form: consecutive ones of one title and one context share their article and paragraph."""
    articles = []
    for title, of_article in groupby(questions, key=lambda question: question.title):
        paragraphs = [
            {"context": context, "qas": [squad_entry(question, version) for question in of_paragraph]}
            for context, of_paragraph in groupby(of_article, key=lambda question: question.context)
        ]
        articles.append({"title": title, "paragraphs": paragraphs})
    return {"version": "v2.0" if version == "2.0" else version, "data": articles}


def squad_entry(question: Question, version: Version) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": question.id, "question": question.question}
    if question.answers is not None:
        entry["answers"] = answer_objects(question.answers)
        if version == "2.0":
            entry["is_impossible"] = not question.answers
    return entry


def question_line(question: Question) -> dict[str, Any]:
    """A question as one JSON line, which the reader of JSON lines reads back equal."""
    line: dict[str, Any] = {"id": question.id, "question": question.question, "context": question.context}
    if question.title:
        line["title"] = question.title
    if question.answers is not None:
        line["answers"] = answer_objects(question.answers)
    return line


def answer_objects(answers: Iterable[GoldAnswer]) -> list[dict[str, Any]]:
    return [{"text": answer.text, "answer_start": answer.start} for answer in answers]
