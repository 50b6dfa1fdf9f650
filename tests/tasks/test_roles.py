from __future__ import annotations

import itertools
import random

import pytest

from headstart.errors import DataError
from headstart.tasks.roles import (
    Predicate,
    RoleSentence,
    arguments_of,
    base_role,
    known_predicates,
    overlap_notes,
    tags_of_arguments,
    with_verb,
    without_overlaps,
)
from headstart.tasks.spans import Span

ROLES = ["ARG0", "ARG1", "C-ARG1", "R-ARGM-TMP", "V", "C-V"]


def test_arguments_and_tags_by_hand() -> None:
    tags = ["B-ARG1", "I-ARG1", "B-C-ARG1", "O", "B-V"]
    arguments = (Span(0, 2, "ARG1"), Span(2, 3, "C-ARG1"), Span(4, 5, "V"))
    assert arguments_of(tags) == arguments
    assert tags_of_arguments(arguments, 5) == tags
    assert tags_of_arguments((), 2) == ["O", "O"]


def test_any_arguments_that_do_not_overlap_survive_their_tags() -> None:
    rng = random.Random(0)
    for _ in range(300):
        cuts = sorted(rng.sample(range(10), rng.randint(0, 6)))
        spans = tuple(Span(a, b, rng.choice(ROLES)) for a, b in itertools.pairwise(cuts) if rng.random() < 0.7)
        assert arguments_of(tags_of_arguments(spans, 10)) == spans
        assert without_overlaps(rng.sample(spans, len(spans))) == (spans, [])


def test_of_overlapping_arguments_v_stays_then_the_longest() -> None:
    outer, inner, verb = Span(0, 4, "ARG1"), Span(1, 2, "R-ARG2"), Span(5, 6, "V")
    assert without_overlaps([inner, verb, outer]) == ((outer, verb), [inner])
    around = Span(4, 9, "ARG2")
    assert without_overlaps([around, outer, verb]) == ((outer, verb), [around])
    assert without_overlaps([Span(0, 2, "ARG1"), Span(0, 2, "ARG0"), verb]) == (
        (Span(0, 2, "ARG0"), verb),
        [Span(0, 2, "ARG1")],
    )
    assert without_overlaps([verb, verb]) == ((verb,), [])


def test_what_overlaps_is_told() -> None:
    words = ["such", "concerns", "are", "far"]
    (note,) = overlap_notes([Span(0, 2, "ARG2")], 2, words, "some.conll:7")
    assert note == "some.conll:7: ARG2 'such concerns' of the predicate 'are'"


def test_a_predicate_has_its_v() -> None:
    assert with_verb([Span(0, 1, "ARG0")], 2) == [Span(0, 1, "ARG0"), Span(2, 3, "V")]
    for there in (Span(1, 4, "V"), Span(2, 3, "C-V")):
        assert with_verb([there], 2) == [there]


def test_a_continuation_and_a_reference_belong_to_a_role() -> None:
    assert [base_role(role) for role in ("ARG1", "C-ARG1", "R-ARG1", "C-R-ARG1", "ARGM-LOC")] == [
        *["ARG1"] * 4,
        "ARGM-LOC",
    ]


def test_only_known_arguments_are_learned() -> None:
    whole = (Predicate(0, arguments=(Span(0, 1, "V"),)),)
    assert known_predicates(RoleSentence(("Go",), whole)) == whole
    assert known_predicates(RoleSentence(("Oh",), ())) == ()
    with pytest.raises(DataError, match=r"x:3: the predicates of this sentence are not given"):
        known_predicates(RoleSentence(("Go",), None, "x:3"))
    with pytest.raises(DataError, match=r"x:3: the arguments of the predicate 'Go' \(word 1\) are not given"):
        known_predicates(RoleSentence(("Go",), (Predicate(0),), "x:3"))
