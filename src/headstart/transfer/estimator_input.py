"""What an estimator's user passes in, checked: texts, pairs, labels, sentences, tags, questions, answers.

Every mistake is one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.config import nearest
from headstart.errors import ConfigError, DataError
from headstart.tasks.conll import TaggedSentence
from headstart.tasks.pair_reading import PairExample
from headstart.tasks.questions import GoldAnswer, Question, fault_of
from headstart.tasks.tag_inputs import sentence_of_text
from headstart.text.formats import clean, clean_word, without_surrogates

Texts = Iterable[str]
Words = Sequence[str]
Pairs = Iterable[Sequence[str]]
"""Two strings each; also a table with two columns (numpy, pandas), which is read by its rows."""
Questions = Iterable[Sequence[str] | Mapping[str, str]]
"""(question, context), or a dictionary with these keys."""
FIRST_AND_SECOND = ("first text", "second text")
QUESTION_AND_CONTEXT = ("question", "context")
STARTS = ("answer_start", "start")
"""The keys of an answer's first character: SQuAD's, and that of `QuestionAnswerer.answers`."""


def checked_texts(texts: Texts) -> list[str]:
    if texts is None or isinstance(texts, str | bytes):
        what = "one text was given. Put it in a list" if isinstance(texts, str | bytes) else "None was given"
        raise DataError(f"A list of texts is wanted, and {what}.")
    found = list(texts)
    for number, text in enumerate(found, 1):
        if not isinstance(text, str):
            raise DataError(f"Text {number:,} of {len(found):,} is not a string; got {text!r:.60}.")
        if not text.strip():
            raise DataError(f"Text {number:,} of {len(found):,} is empty. Leave it out, or fill it in.")
    return [clean(str(text)) for text in found]


def checked_pairs(pairs: Pairs) -> list[PairExample]:
    found = rows_of(pairs, "pairs", "two texts")
    texts = [
        two_texts(row, FIRST_AND_SECOND, f"Pair {number:,} of {len(found):,}") for number, row in enumerate(found, 1)
    ]
    return [PairExample(clean(first), clean(second)) for first, second in texts]


def checked_questions(questions: Questions) -> list[Question]:
    found = rows_of(questions, "questions", "a question with its context")
    checked = []
    for number, row in enumerate(found, 1):
        where = f"Question {number:,} of {len(found):,}"
        # Line breaks stay as they are: answers are places in this very context.
        question, context = map(without_surrogates, two_texts(row, QUESTION_AND_CONTEXT, where))
        checked.append(Question(f"question {number}", question, context, where=where))
    return checked


def answered_questions(questions: Questions, answers: Iterable[Any]) -> list[Question]:
    found = checked_questions(questions)
    given = rows_of(answers, "answers", "a string, (text, start), a list of these, or None")
    check_equal(len(found), len(given), "question", "answer")
    return [replace(question, answers=gold_answers(row, question)) for question, row in zip(found, given, strict=True)]


def gold_answers(given: Any, question: Question) -> tuple[GoldAnswer, ...]:
    """All right answers to a question, at their places in the context; none for None and for ""."""
    found = listed_answers(given, question.where)
    if found == [("", None)]:
        return ()
    for text, start in found:
        if fault := fault_of(question.context, text, start):
            raise DataError(f"{question.where}: {fault}.")
    return tuple([GoldAnswer(text, question.context.find(text) if at is None else at) for text, at in found])


def listed_answers(given: Any, where: str) -> list[tuple[str, int | None]]:
    """(text, start) of each; no start: the first place at which the context has the text."""
    if given is None:
        return []
    if isinstance(given, Mapping) and isinstance(given.get("text"), list | np.ndarray):  # Hugging Face's datasets
        texts, starts = list(given["text"]), list(given.get("answer_start", ()))
        if len(texts) != len(starts):
            raise DataError(f"{where}: {len(texts):,} answers have {len(starts):,} values of 'answer_start'.")
        given = list(zip(texts, starts, strict=True))
    if isinstance(given, str | Mapping) or has_start(given) or not isinstance(given, list | tuple | np.ndarray):
        given = [given]
    return [one_answer(one, where) for one in given]


def has_start(given: Any) -> bool:
    """Whether this is one answer, (text, start)."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        return False
    return isinstance(given[0], str) and isinstance(given[1], Integral) and not isinstance(given[1], bool)


def one_answer(given: Any, where: str) -> tuple[str, int | None]:
    if isinstance(given, Mapping) and isinstance(given.get("text"), str):
        start = next((given[name] for name in STARTS if given.get(name) is not None), None)
        given = given["text"] if start is None else (given["text"], start)
    if isinstance(given, str):
        return without_surrogates(given), None
    if not has_start(given):
        raise DataError(
            f"{where}: an answer is a string, (text, start) or {{'text': ..., 'answer_start': ...}}, with the start as "
            f"a whole number, and None if there is none; got {given!r:.60}."
        )
    return without_surrogates(given[0]), int(given[1])


def rows_of(given: Any, many: str, each: str) -> list[Any]:
    """A list, or the rows of an array or a table: iterating over a table of pandas would give its columns."""
    # An array of no dimension becomes a string or a number here.
    rows = np.asarray(given).tolist() if hasattr(given, "__array__") else given
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise DataError(f"A list of {many} is wanted, each {each}; got {rows!r:.60}.")
    return list(rows)


def two_texts(row: Any, names: tuple[str, str], where: str) -> tuple[str, str]:
    """Both texts of a row, neither of them empty. where: which row it is."""
    if isinstance(row, Mapping):
        missing = [name for name in names if name not in row]
        if missing:
            raise DataError(f"{where} has no '{missing[0]}'; it has {', '.join(map(str, row)) or 'nothing'}.")
        row = [row[name] for name in names]
    texts = [row] if isinstance(row, str | bytes) or not isinstance(row, Iterable) else list(row)
    if len(texts) != 2:
        raise DataError(f"{where} must be two texts, ({', '.join(names)}); got {texts!r:.60}.")
    for name, text in zip(names, texts, strict=True):
        if not isinstance(text, str):
            raise DataError(f"{where}: the {name} is not a string; got {text!r:.60}.")
        if not text.strip():
            raise DataError(f"{where}: the {name} is empty. Leave it out, or fill it in.")
    return str(texts[0]), str(texts[1])


def checked_sentences(sentences: Iterable[Words | str]) -> list[TaggedSentence]:
    if sentences is None or isinstance(sentences, str | bytes):
        raise DataError("A list of sentences is wanted, each a list of words or a string. Put a single one in a list.")
    found: list[TaggedSentence] = []
    for number, sentence in enumerate(sentences, 1):
        if isinstance(sentence, str):
            # Line breaks stay as they are: entities are told at the characters of this very string.
            found.append(sentence_of_text(without_surrogates(sentence), f"sentence {number:,}"))
            continue
        words = list(sentence) if isinstance(sentence, Iterable) else [sentence]
        if not words or not all(isinstance(word, str) and word.strip() for word in words):
            raise DataError(f"Sentence {number:,} must be a list of words, none of them empty; got {sentence!r:.60}.")
        found.append(TaggedSentence(tuple(clean_word(word) for word in words), None, f"sentence {number:,}"))
    return found


def tagged_sentences(sentences: Iterable[Words], tags: Iterable[Words]) -> list[TaggedSentence]:
    found = checked_sentences(sentences)
    rows = [] if tags is None else [tuple(map(str, row)) for row in tags]
    check_equal(len(found), len(rows), "sentence", "tag list")
    for number, (example, row) in enumerate(zip(found, rows, strict=True), 1):
        if not example.words:
            raise DataError(f"Sentence {number:,} has no words, so there is nothing to tag. Leave it out.")
        if len(example.words) != len(row):
            raise DataError(f"Sentence {number:,} has {len(example.words):,} words and {len(row):,} tags.")
    return [
        TaggedSentence(example.words, row, example.where, example.text, example.offsets, example.sentences)
        for example, row in zip(found, rows, strict=True)
    ]


def checked_share(share: object) -> float:
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) < 1:
        raise ConfigError(f"validation_fraction is a share of the examples, from 0 to below 1; got {share!r:.60}.")
    return float(share)


def check_equal(examples: int, labels: int, one: str, label: str = "label") -> None:
    if examples != labels:
        raise DataError(f"There are {examples:,} {one}s and {labels:,} {label}s; each {one} needs one {label}.")


def classes_of(values: NDArray[Any], one: str) -> NDArray[Any]:
    """The distinct labels in order, in their own type."""
    if values.dtype.kind == "f" and not np.array_equal(values, np.round(values)):
        raise DataError("Labels are classes: whole numbers or strings. Got numbers with fractions, or NaN.")
    if values.dtype.kind == "O" and any(value is None or value != value for value in values.tolist()):
        raise DataError(f"Some labels are missing (None or NaN). Leave these {one}s out, or label them.")
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


def as_array(labels: Iterable[Any], one: str) -> NDArray[Any]:
    if labels is None or isinstance(labels, str | bytes):
        raise DataError(f"A list of labels is wanted, one for each {one}; got {labels!r:.60}.")
    listed = labels if hasattr(labels, "__array__") else list(labels)
    if not hasattr(listed, "__array__") and any(isinstance(value, float) and value != value for value in listed):
        # numpy would turn a NaN among strings into the class 'nan'.
        raise DataError(f"Some labels are missing (NaN). Leave these {one}s out, or label them.")
    values: NDArray[Any] = np.asarray(listed)
    if values.ndim != 1:
        raise DataError(f"Labels come as one list, one for each {one}; got an array of shape {values.shape}.")
    return values
