from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from headstart.tasks.role_scores import (
    PREDICATE_F1,
    ROLE_F1,
    arguments_in,
    headline_scores,
    joined,
    perfect_counts,
    predicate_counts,
    role_counts,
    score_titles,
    scores_by_role,
)
from headstart.tasks.roles import Predicate, arguments_of
from headstart.tasks.spans import Span

VERB = Span(2, 3, "V")


def predicate(*arguments: tuple[int, int, str], word: int = 2) -> Predicate:
    return Predicate(word, arguments=tuple(sorted(Span(*one) for one in arguments)))


def counts(gold: Predicate, predicted: Predicate) -> tuple[int, ...]:
    return tuple(role_counts([gold], [predicted]))


def test_v_is_left_out_and_an_argument_needs_its_role_and_its_words() -> None:
    gold = predicate(VERB, (0, 2, "ARG0"), (3, 5, "ARG1"), (5, 6, "ARGM-TMP"))
    predicted = predicate(VERB, (0, 2, "ARG0"), (3, 4, "ARG1"), (5, 6, "ARGM-LOC"))
    assert counts(gold, predicted) == (1, 3, 3)
    assert counts(gold, predicate(VERB)) == (0, 0, 3)
    assert counts(predicate((2, 3, "V")), predicate((1, 3, "V"))) == (0, 0, 0)
    assert counts(predicate(VERB, (4, 5, "C-V")), predicate(VERB)) == (0, 0, 0)


def test_a_continuation_is_right_only_with_the_whole_argument() -> None:
    gold = predicate((0, 2, "ARG1"), VERB, (4, 6, "C-ARG1"))
    assert counts(gold, gold) == (1, 1, 1)
    assert counts(gold, predicate((0, 2, "ARG1"), VERB)) == (0, 1, 1)
    assert counts(gold, predicate((0, 2, "ARG1"), VERB, (4, 5, "C-ARG1"))) == (0, 1, 1)
    assert counts(gold, predicate((0, 2, "ARG1"), VERB, (4, 6, "ARG1"))) == (0, 2, 1)
    assert counts(predicate((0, 2, "ARG1"), VERB), gold) == (0, 1, 1)


def test_a_continuation_without_its_argument_is_that_argument() -> None:
    alone = predicate(VERB, (4, 6, "C-ARG1"))
    assert counts(predicate(VERB, (4, 6, "ARG1")), alone) == (1, 1, 1)
    before = predicate((0, 1, "C-ARG1"), VERB, (4, 6, "ARG1"))
    assert joined(before.arguments or ()) == [("ARG1", ((0, 1),)), ("V", ((2, 3),)), ("ARG1", ((4, 6),))]
    assert joined([Span(0, 1, "C-ARG1"), Span(3, 4, "C-ARG1")]) == [("ARG1", ((0, 1), (3, 4)))]


def test_a_continuation_belongs_to_the_last_argument_of_its_role() -> None:
    two = [Span(0, 1, "ARG1"), Span(1, 2, "ARG1"), VERB, Span(3, 4, "ARG0"), Span(5, 6, "C-ARG1")]
    assert joined(two) == [("ARG1", ((0, 1),)), ("ARG1", ((1, 2), (5, 6))), ("V", ((2, 3),)), ("ARG0", ((3, 4),))]


def test_a_reference_is_an_argument_of_its_own() -> None:
    gold = predicate((0, 1, "ARG0"), (1, 2, "R-ARG0"), VERB)
    assert counts(gold, predicate((0, 1, "ARG0"), VERB)) == (1, 1, 2)
    assert counts(gold, predicate((0, 1, "ARG0"), (1, 2, "ARG0"), VERB)) == (1, 2, 2)
    continued = predicate((0, 1, "R-ARG0"), VERB, (4, 5, "C-R-ARG0"))
    assert joined(continued.arguments or ())[0] == ("R-ARG0", ((0, 1), (4, 5)))


def test_predicates_are_matched_by_their_word() -> None:
    gold = [predicate((0, 1, "ARG0"), VERB), predicate((5, 6, "V"), (6, 7, "ARG1"), word=5)]
    missed = [gold[0]]
    assert role_counts(gold, missed) == (1, 1, 2)
    elsewhere = [gold[0], predicate((4, 5, "V"), (6, 7, "ARG1"), word=4)]
    assert role_counts(gold, elsewhere) == (1, 2, 2)
    assert predicate_counts(gold, elsewhere) == (1, 2, 2)
    assert predicate_counts([], gold) == (0, 2, 0)
    assert role_counts([], []) == (0, 0, 0)
    assert perfect_counts(gold, elsewhere) == (1, 2)
    assert perfect_counts(gold, [gold[0], predicate((5, 7, "V"), (6, 7, "ARG1"), word=5)]) == (2, 2)


def test_what_is_given_twice_counts_once() -> None:
    one = Predicate(2, arguments=(Span(0, 1, "ARG0"), Span(0, 1, "ARG0"), VERB))
    assert role_counts([one, one], [one]) == (1, 1, 1)
    assert role_counts([one], [one, one]) == (1, 1, 1)


def test_unknown_arguments_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="predicate at word 3 are not known"):
        role_counts([Predicate(3)], [])


def test_scores_by_hand() -> None:
    gold = [[predicate((0, 1, "ARG0"), VERB, (3, 4, "ARG1"), (5, 6, "C-ARG1"))], []]
    predicted = [[predicate((0, 1, "ARG0"), VERB, (3, 4, "ARG1"))], [predicate(VERB, (3, 4, "ARG2"))]]
    found = headline_scores(gold, predicted)
    assert found == pytest.approx({"f1": 2 / 5, "precision": 1 / 3, "recall": 1 / 2, "predicate_f1": 2 / 3})
    assert list(found) == list(score_titles())
    table = scores_by_role(gold, predicted)
    assert list(table) == ["ARG0", "ARG1", "ARG2", "V"]
    assert table["ARG1"] == {"precision": 0, "recall": 0, "f1": 0, "gold": 1, "predicted": 1}
    assert table["ARG0"]["f1"] == 1
    assert table["V"] == {"precision": 0.5, "recall": 1, "f1": pytest.approx(2 / 3), "gold": 1, "predicted": 2}
    assert scores_by_role([[]], [[]]) == {}
    assert headline_scores([[]], [[]]) == dict.fromkeys(score_titles(), 0)


def test_the_metrics_are_functions_of_summed_counts() -> None:
    rows = np.array([[1, 2, 1], [0, 1, 1], [0, 0, 0]], dtype=np.float64)
    assert ROLE_F1.of(rows) == pytest.approx(2 / 5)
    assert PREDICATE_F1.of(rows[2:]) == 0
    resampled = np.stack([rows[[0, 0, 1]].sum(axis=0), rows[[2, 2, 2]].sum(axis=0)])
    assert ROLE_F1.value(resampled).tolist() == pytest.approx([4 / 8, 0])


def words_by_argument(tags: list[str]) -> list[tuple[str, list[list[int]]]]:
    """srl-eval.pl's rules over single words, without spans: for each argument its role and its runs of words."""
    found: list[tuple[str, list[list[int]]]] = []
    for place, tag in enumerate(tags):
        begins, role = tag[0] == "B", tag[2:]
        if not role:
            continue
        if not begins and place and tags[place - 1][2:] == role:
            next(a for a in found if a[1][-1][-1] == place - 1)[1][-1].append(place)
            continue
        name = role[2:] if role.startswith("C-") else role
        before = [argument for argument in found if argument[0] == name]
        if role.startswith("C-") and before:
            before[-1][1].append([place])
        else:
            found.append((name, [[place]]))
    return [argument for argument in found if argument[0] != "V"]


def test_counts_are_those_of_a_plain_loop_over_every_pair_of_short_sentences() -> None:
    names = ["O", "B-A1", "I-A1", "B-C-A1", "I-C-A1", "B-V"]
    for gold, predicted in itertools.product(itertools.product(names, repeat=3), repeat=2):
        check_against_loop(list(gold), list(predicted))


def test_counts_are_those_of_a_plain_loop_on_longer_sentences() -> None:
    rng = random.Random(1)
    roles = ["A0", "A1", "C-A1", "R-A1", "C-R-A1", "V", "C-V", "C-A0"]
    names = ["O", "O", *(f"{prefix}-{role}" for role in roles for prefix in "BI")]
    for _ in range(3000):
        gold = rng.choices(names, k=9)
        check_against_loop(gold, [tag if rng.random() < 0.85 else rng.choice(names) for tag in gold])


def check_against_loop(gold: list[str], predicted: list[str]) -> None:
    wanted, given = words_by_argument(gold), words_by_argument(predicted)
    right = sum(argument in wanted for argument in given)
    found = counts(Predicate(2, arguments=arguments_of(gold)), Predicate(2, arguments=arguments_of(predicted)))
    assert found == (right, len(given), len(wanted)), (gold, predicted)


def test_arguments_know_their_predicate() -> None:
    some = [predicate((0, 1, "ARG0")), predicate((0, 1, "ARG0"), word=4)]
    assert sorted(arguments_in(some)) == [(2, "ARG0", ((0, 1),)), (4, "ARG0", ((0, 1),))]
