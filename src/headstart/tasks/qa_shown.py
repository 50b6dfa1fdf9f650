"""A question in a report: the context around its gold answer, and where the answers of models stand."""

from __future__ import annotations

from collections.abc import Sequence

from headstart.config import Table
from headstart.tasks.questions import Question
from headstart.tasks.shown import AnswerText, Segment, Shown, ShownText, marked, part_around, shortened

AROUND_GOLD = 240
"""Characters of the context that are shown with the gold answer."""
AROUND_ANSWER = 110
"""Characters that are shown with an answer which lies elsewhere."""
NO_ANSWER = "no answer"


def show_question(example: Question, answers: Sequence[Table]) -> Shown:
    golds = example.answers or ()
    start, end = (golds[0].start, golds[0].start + len(golds[0].text)) if golds else (0, 0)
    part = part_around(example.context, start, end, AROUND_GOLD)
    texts = [
        ShownText("question", [Segment(shortened(example.question))]),
        ShownText("context", marked(example.context, start, end, part)),
    ]
    gold = " / ".join(dict.fromkeys(answer.text for answer in golds))
    return Shown(texts, gold or NO_ANSWER, [show_answer(example, answer, part) for answer in answers])


def show_answer(example: Question, answer: Table, part: tuple[int, int]) -> AnswerText:
    """The answer alone where the reader sees its place in `part` of the context, else with some context of its own."""
    if not answer["answer"]:
        return AnswerText([Segment(NO_ANSWER)])
    start, end = answer["start"], answer["end"]
    if part[0] <= start and end <= part[1]:
        return AnswerText([Segment(answer["answer"])])
    return AnswerText(marked(example.context, start, end, part_around(example.context, start, end, AROUND_ANSWER)))
