from __future__ import annotations

from headstart.tasks.role_json import roles_as_json
from headstart.tasks.role_shown import MOST_PREDICATES, show_roles
from headstart.tasks.roles import Predicate, Roles, RoleSentence
from headstart.tasks.shown import CUT, Segment
from headstart.tasks.spans import Span

GOLD = RoleSentence(
    ("We", "saw", "her", "leave"),
    (
        Predicate(1, arguments=(Span(0, 1, "ARG0"), Span(1, 2, "V"), Span(2, 4, "ARG1"))),
        Predicate(3, arguments=(Span(2, 3, "ARG0"), Span(3, 4, "V"))),
    ),
)


def text(segments: list[Segment]) -> str:
    return "".join(f"<{one.text}>" if one.marked else one.text for one in segments)


def test_predicates_are_marked_in_the_sentence_and_wrong_arguments_in_an_answer() -> None:
    right = Roles(GOLD.predicates or ())
    wrong = Roles((Predicate(1, arguments=(Span(0, 1, "ARG1"), Span(1, 2, "V"), Span(2, 4, "ARG1"))),))
    shown = show_roles(GOLD, [roles_as_json(GOLD, answer) for answer in (right, wrong, Roles(()))])
    assert [(one.title, text(one.segments)) for one in shown.texts] == [("sentence", "We <saw> her <leave>")]
    assert shown.gold == "saw: ARG0 We, ARG1 her leave; leave: ARG0 her"
    assert [text(answer.segments) for answer in shown.answers] == [
        shown.gold,
        "saw: <ARG1 We>, ARG1 her leave",
        "no predicates",
    ]
    assert [answer.note for answer in shown.answers] == ["", "1 wrong (marked), 2 missing", "3 missing"]


def test_sentences_without_predicates_or_arguments_say_so() -> None:
    empty = RoleSentence(("Oh", "."), ())
    assert show_roles(empty, [{"predicates": []}]).gold == "no predicates"
    bare = RoleSentence(("Go", "."), (Predicate(0, arguments=(Span(0, 1, "V"),)),))
    assert show_roles(bare, []).gold == "Go: no arguments"


def test_long_sentences_and_many_predicates_are_cut() -> None:
    words = tuple(f"word{number}" for number in range(500))
    predicates = tuple(Predicate(number, arguments=(Span(100, 400, "ARG1"),)) for number in range(10))
    shown = show_roles(RoleSentence(words, predicates), [])
    assert text(shown.texts[0].segments).endswith(CUT)
    assert len(text(shown.texts[0].segments)) < 400
    assert shown.gold.endswith(f"; {CUT}")
    assert shown.gold.count("ARG1") == MOST_PREDICATES
    assert len(shown.gold) < 500
