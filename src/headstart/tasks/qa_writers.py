"""The formats of answers: the predictions that SQuAD's scorers read, tab-separated lines, and a view for a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from headstart.errors import DataError
from headstart.tasks.answer_search import Answered
from headstart.tasks.base import Task, Writer
from headstart.tasks.prediction_writers import one_line
from headstart.tasks.questions import Question
from headstart.tasks.shown import marked, part_around
from headstart.tasks.tag_view import without_controls

AROUND = 50
"""Characters of the context that the view shows on each side of an answer."""
BOLD_REVERSE, PLAIN = "\x1b[1;7m", "\x1b[0m"

Pairs = Iterable[tuple[Question, Answered]]


class SquadPredictions(Writer[Question, Answered]):
    """One JSON object, id -> answer, as SQuAD's scorers read it; "" is no answer."""

    def __init__(self, task: Task[Question, Answered]) -> None:
        super().__init__(task)
        self.written: set[str] = set()

    def begin(self) -> str:
        return "{"

    def lines(self, pairs: Pairs) -> str:
        return "".join(self.entry(question, answer) for question, answer in pairs)

    def entry(self, question: Question, answer: Answered) -> str:
        """An entry begins with what separates it from the one before, as the last one has nothing after it."""
        if question.id in self.written:
            raise DataError(
                f"{question.where}: the id '{question.id}' is that of an earlier question, too, but predictions are "
                f"written by id. Give each question its own, or write another format."
            )
        separator = ",\n" if self.written else "\n"
        self.written.add(question.id)
        return f"{separator}{quoted(question.id)}: {quoted(answer.text)}"

    def end(self) -> str:
        return "\n}\n"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class AnswerLines(Writer[Question, Answered]):
    """`answer TAB probability TAB question`, with spaces for line breaks and tabs; no answer is an empty one."""

    def lines(self, pairs: Pairs) -> str:
        return "".join(
            f"{one_line(answer.text)}\t{certainty(question, answer)}\t{one_line(question.question)}\n"
            for question, answer in pairs
        )


def certainty(question: Question, answer: Answered) -> str:
    """The probability of the answer; nothing for a blank line, which asks nothing."""
    return f"{answer.probability:.4f}" if question.question.strip() else ""


class AnswerView(Writer[Question, Answered]):
    """The question, and below it the answer where it stands in the context, with its probability.

    On a terminal the answer is bold and reversed; anywhere else it is in brackets.
    """

    def lines(self, pairs: Pairs) -> str:
        before, after = (BOLD_REVERSE, PLAIN) if sys.stdout.isatty() else ("[", "]")
        return "".join(
            f"{visible(question.question)}\n  {shown(question.context, answer, before, after)}  "
            f"({100 * answer.probability:.1f} %)\n\n"
            for question, answer in pairs
        )


def shown(context: str, answer: Answered, before: str, after: str) -> str:
    """An answer in its context. before, after: what marks the answer."""
    if not answer.text:
        return "no answer"
    part = part_around(context, answer.start, answer.end, len(answer.text) + 2 * AROUND)
    pieces = marked(context, answer.start, answer.end, part)
    shown = (f"{before}{visible(one.text)}{after}" if one.marked else visible(one.text) for one in pieces)
    return "".join(shown).strip()


def visible(text: str) -> str:
    """Text on one line, without what would move the cursor of a terminal."""
    return without_controls(one_line(text))
