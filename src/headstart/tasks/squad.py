"""Questions about a context and where their answers stand in it: SQuAD 1.1 and 2.0 files, and JSON lines.

Answers are places in the context, so context, question and answers keep every character as it is in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import model_validator

from headstart.config import Section
from headstart.errors import DataError, Remedy
from headstart.tasks.questions import Found, GoldAnswer, Question, QuestionFile, Version, answers_in, checked, member
from headstart.tasks.reading import choose_column
from headstart.text.files import Source, decode
from headstart.text.formats import text_of, without_surrogates
from headstart.text.tables import json_object, listed_columns

SQUAD = (".json", ".json.gz")
JSON_LINES = (".jsonl", ".jsonl.gz")
CONTEXT_FIELDS = ("context", "passage", "text")
QUESTION_FIELDS = ("question",)
ANSWERS_FIELDS = ("answers", "answer")
VERSION_2 = re.compile(r"v?2(\.[0-9]+)*", re.IGNORECASE)
SET_CONTEXT = Remedy("Name the key with the context with {}.", "context_field=NAME", "--context-field")
SET_QUESTION = Remedy("Name the key with the question with {}.", "question_field=NAME", "--question-field")


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
