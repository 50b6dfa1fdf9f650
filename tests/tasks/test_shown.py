from __future__ import annotations

import pytest

from headstart.tasks.labels import Prediction
from headstart.tasks.pair import Pair
from headstart.tasks.pair_reading import PairExample
from headstart.tasks.qa import Qa
from headstart.tasks.questions import GoldAnswer, Question
from headstart.tasks.shown import LONGEST_TEXT, AnswerText, Segment, ShownText, marked, part_around, shortened
from headstart.tasks.tag import Tag

CONTEXT = "".join(f"word{number} " for number in range(100)) + '<b>Ñandú 🦤 & "co"</b> ' + "and so on " * 50
GOLD = 'Ñandú 🦤 & "co"'


def whole(segments: list[Segment]) -> str:
    return "".join(segment.text for segment in segments)


@pytest.mark.parametrize("end", [0, 1, 5, 150, 300, len(CONTEXT)])
@pytest.mark.parametrize("start", [0, 3, 150, 299, 700, len(CONTEXT) - 1])
def test_what_is_marked_is_exactly_the_part_asked_for_and_the_rest_is_what_stands_beside_it(
    start: int, end: int
) -> None:
    end = min(len(CONTEXT), start + end)
    first, last = part_around(CONTEXT, start, end, 200)
    assert 0 <= first <= start <= end <= last <= len(CONTEXT)
    assert last - first <= max(200, end - start + 60) + 1
    segments = marked(CONTEXT, start, end, (first, last))
    assert [segment.text for segment in segments if segment.marked] == ([CONTEXT[start:end]] if end > start else [])
    assert whole(segments) == ("…" * (first > 0)) + CONTEXT[first:last] + "…" * (last < len(CONTEXT))


def test_cuts_are_between_words_where_there_are_spaces() -> None:
    start = CONTEXT.index(GOLD)
    first, last = part_around(CONTEXT, start, start + len(GOLD), 200)
    assert CONTEXT[first - 1] == " "
    assert CONTEXT[last] == " "
    assert shortened("ab " * 200).endswith("ab…")
    assert shortened("x" * 1000) == "x" * LONGEST_TEXT + "…"
    assert shortened("short") == "short"


def question(*answers: str) -> Question:
    return Question("q1", "Who?", CONTEXT, tuple([GoldAnswer(text, CONTEXT.index(text)) for text in answers]))


def test_an_answer_that_lies_elsewhere_comes_with_its_own_context() -> None:
    near = {"answer": "and so", "start": CONTEXT.index("and so"), "end": CONTEXT.index("and so") + 6}
    far = {"answer": "word3", "start": CONTEXT.index("word3"), "end": CONTEXT.index("word3") + 5}
    shown = Qa().show(question(GOLD, "Ñandú", GOLD), [near, far, {"answer": "", "start": None, "end": None}])
    assert shown.texts[0] == ShownText("question", [Segment("Who?")])
    assert [segment.text for segment in shown.texts[1].segments if segment.marked] == [GOLD]
    assert shown.gold == f"{GOLD} / Ñandú"
    here, there, none = shown.answers
    assert (here, none) == (AnswerText([Segment("and so")]), AnswerText([Segment("no answer")]))
    assert whole(there.segments).startswith("word0 word1 word2 word3 word4")
    assert [segment.text for segment in there.segments if segment.marked] == ["word3"]


def test_a_question_without_answer_shows_the_beginning_of_its_context() -> None:
    shown = Qa("2.0").show(question(), [])
    assert shown.gold == "no answer"
    assert [segment.marked for segment in shown.texts[1].segments] == [False]
    assert whole(shown.texts[1].segments).startswith("word0 word1")


def test_a_pair_shows_both_texts_and_each_label_with_its_probability() -> None:
    task, example = Pair(("no", "yes")), PairExample("A dog .", "An animal .", "yes")
    answer = task.as_json(example, Prediction("no", [0.75, 0.25]))  # type: ignore[arg-type]
    shown = task.show(example, [answer])
    texts = [(text.title, whole(text.segments)) for text in shown.texts]
    assert texts == [("first text", "A dog ."), ("second text", "An animal .")]
    assert (shown.gold, shown.answers) == ("yes", [AnswerText([Segment("no")], "probability 75 %")])


def test_tagging_shows_none() -> None:
    assert Tag(("O", "B-LOC")).show(None, []) is None  # type: ignore[arg-type]
