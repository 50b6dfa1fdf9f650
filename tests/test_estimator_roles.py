"""RoleLabeler: predicates and arguments as users write them, scikit-learn's tools, kept and carried about."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import headstart
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.estimator import RoleLabeler, Tagger
from headstart.tasks.roles import Predicate
from headstart.tasks.spans import Span
from headstart.transfer.estimator_roles import asked_sentences, labelled_sentences

SMALL: dict[str, Any] = {"min_steps": 80, "epochs": 0.1, "learning_rate": 0.02, "settings": {"network": {"width": 16}}}
WORDS = ["Anna", "sold", "the", "house"]
ARG0, ARG1 = {"role": "ARG0", "start": 0, "end": 1}, {"role": "ARG1", "start": 2, "end": 4}
SOLD = {"word": 1, "arguments": [ARG0, ARG1]}
SPANS = (Span(0, 1, "ARG0"), Span(1, 2, "V"), Span(2, 4, "ARG1"))

Sentences = tuple[list[list[str]], list[list[dict[str, Any]]]]


def sales(n: int, seed: int = 0) -> Sentences:
    """Somebody sold or bought something; every fifth sentence has no predicate."""
    rng = random.Random(seed)
    sentences, predicates = [], []
    for number in range(n):
        subject, verb, thing = rng.choice(["Anna", "Boris"]), rng.choice(["sold", "bought"]), rng.choice(["cars", "it"])
        sentences.append([subject, verb, thing, "."] if number % 5 else [subject, "and", thing, "."])
        roles = [{"role": "ARG0", "start": 0, "end": 1}, {"role": "ARG1", "start": 2, "end": 3}]
        predicates.append([{"word": 1, "arguments": roles}] if number % 5 else [])
    return sentences, predicates


def small(**parameters: Any) -> RoleLabeler:
    return RoleLabeler(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def fitted() -> RoleLabeler:
    return small().fit(*sales(40))


def test_it_learns_roles_with_and_without_given_predicates(fitted: RoleLabeler) -> None:
    sentences, predicates = sales(20, seed=1)
    assert fitted.score(sentences, predicates) == 1
    assert fitted.roles_ == ["ARG0", "ARG1", "V"]
    assert next(iter(fitted.scores_)) == "f1"
    found = fitted.predict(sentences)
    assert fitted.score(sentences, found) == 1  # what it predicts is what it learns from
    assert found == fitted.predict(sentences, [[one["word"] for one in own] for own in predicates])
    assert found == fitted.predict(sentences, predicates)
    assert found == fitted.predict(sentences, [None] * 20)
    assert [[one["word"] for one in own] for own in found] == [[one["word"] for one in own] for own in predicates]
    assert fitted.predict([]) == []
    assert fitted.predict(sentences[1:2], [[]]) == [[]]


def test_a_text_is_split_and_its_arguments_stand_at_its_characters(fitted: RoleLabeler) -> None:
    text = "Anna sold cars .  Boris bought it ."
    both, blank, wordless = fitted.predict([text, "", "\u200b"])
    assert (blank, wordless) == ([], [])
    assert [(one["text"], text[one["start"] : one["end"]]) for one in both] == [("sold", "sold"), ("bought", "bought")]
    words = text.split()
    for predicate in both:
        assert words[predicate["word"]] == predicate["text"]
        for argument in predicate["arguments"]:
            assert argument["text"] == text[argument["start"] : argument["end"]]
            assert argument["text"].split() == words[argument["first_word"] : argument["end_word"]]
    roles = [[(a["role"], a["text"]) for a in one["arguments"]] for one in both]
    assert roles == [
        [("ARG0", "Anna"), ("V", "sold"), ("ARG1", "cars")],
        [("ARG0", "Boris"), ("V", "bought"), ("ARG1", "it")],
    ]


@pytest.mark.parametrize(
    "given",
    [
        SOLD,
        {"word": np.int64(1), "arguments": [ARG0, {"role": "V", "start": 1, "end": 2}, ARG1]},
        {"word": 1, "arguments": [{"role": "ARG1", "first_word": 2, "end_word": 4, "start": 10, "end": 19}, ARG0]},
        {"word": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]},
        {"tags": ("B-ARG0", "B-V", "B-ARG1", "I-ARG1")},
        ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"],
        np.array(["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]),
        Predicate(1, arguments=SPANS),
    ],
)
def test_a_predicate_may_be_written_in_many_ways(given: Any) -> None:
    (sentence,), overlapping = labelled_sentences([WORDS], [[given]])
    assert sentence.predicates == (Predicate(1, arguments=SPANS),)
    assert overlapping == []


def test_the_words_that_are_predicates_may_be_numbers() -> None:
    found = asked_sentences([WORDS] * 5, [[1], np.array([3, 1]), [SOLD], None, []])
    wanted = [(Predicate(1),), (Predicate(1), Predicate(3)), (Predicate(1),), None, ()]
    assert [sentence.predicates for sentence in found] == wanted


def test_arguments_that_overlap_are_left_out_with_a_warning() -> None:
    inner = {"role": "ARG2", "start": 2, "end": 3}
    sentences, predicates = sales(10)
    with pytest.warns(UserWarning, match="^1 argument overlaps another .* such as Sentence 11: ARG2 'the'"):
        small(min_steps=2).fit([*sentences, WORDS], [*predicates, [{"word": 1, "arguments": [ARG0, inner, ARG1]}]])


# scikit-learn's tools.


def test_cross_validation_and_the_same_seed() -> None:
    sentences, predicates = sales(30)
    first, second = (cross_val_score(small(min_steps=40), sentences, predicates, cv=2) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert first.mean() > 0.6


def test_grid_search_over_how_an_encoder_is_carried_over(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    sentences, predicates = sales(12)
    estimator = small(pretrained=pretrained_runs["bert"], min_steps=2, cache=tmp_path)
    search = GridSearchCV(estimator, {"how": ["frozen", "finetune"]}, cv=2, error_score="raise")
    search.fit(sentences, predicates)
    assert search.best_params_["how"] in ("frozen", "finetune")
    assert len(search.predict(sentences)) == 12


def test_a_clone_has_the_parameters_and_not_the_fit(fitted: RoleLabeler) -> None:
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    for use in (lambda: other.predict([WORDS]), lambda: other.score([WORDS], [[SOLD]]), lambda: other.save("nowhere")):
        with pytest.raises(NotFittedError):
            use()


# Kept and carried about.


def test_pickled_copied_saved_and_loaded_it_answers_the_same(fitted: RoleLabeler, tmp_path: Path) -> None:
    sentences, _ = sales(9, seed=5)
    fitted.save(tmp_path / "model")
    loaded = RoleLabeler.load(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), loaded):
        assert other.predict(sentences) == fitted.predict(sentences)
        assert other.get_params() == fitted.get_params()
        assert (other.roles_, other.scores_, other.n_iter_) == (fitted.roles_, fitted.scores_, fitted.n_iter_)
    assert headstart.load_task_model(tmp_path / "model").task == fitted.task_model_.task
    with pytest.raises(CheckpointError, match="is a model for semantic role labelling, not for sequence tagging"):
        Tagger.load(tmp_path / "model")


# Bad input: one clear sentence each.


@pytest.mark.parametrize(
    ("sentences", "predicates", "says"),
    [
        ("Anna sold it", [[SOLD]], "A list of sentences is wanted"),
        ([WORDS], None, "A list of the predicates of each sentence is wanted"),
        ([WORDS], "sold", "A list of the predicates of each sentence is wanted"),
        ([WORDS] * 2, [[SOLD]], "There are 2 sentences and 1 predicate list"),
        (["Anna sold it"], [[SOLD]], "^Sentence 1 must be a list of words, because predicates and arguments count"),
        ([[]], [[]], "Sentence 1 must be a list of words, none of them empty"),
        ([WORDS], [None], r"^Sentence 1 must have a list of its predicates, .*, and \[\] if there are none; got None"),
        ([WORDS], [SOLD], "^Sentence 1 must have a list of its predicates, .* got {'word'"),
        ([WORDS], [[1]], "^Sentence 1: a predicate must be an object with 'word' and 'arguments'"),
        ([WORDS], [[{"word": 4, "arguments": []}]], "^Sentence 1: a predicate is at word 4, but .* 4 words, 0 to 3"),
        ([WORDS], [[{"word": 1, "arguments": [{"role": "ARG0"}]}]], "^Sentence 1: has no 'start'; there are"),
        ([WORDS], [[{"word": 1, "arguments": [{**ARG0, "end": 9}]}]], "^Sentence 1: ARG0 goes from word 0 to 9"),
        ([WORDS], [[["O", "B-V"]]], "^Sentence 1: a predicate has 2 tags for 4 words"),
        ([WORDS], [[["O"] * 4]], "^Sentence 1: a predicate has neither a 'word' nor a tag B-V"),
        ([WORDS], [[SOLD, SOLD]], r"^Sentence 1: the word 'sold' \(word 1\) is given as a predicate twice"),
        ([WORDS], [[]], "no predicate with arguments, so there is nothing to learn"),
    ],
)
def test_sentences_and_predicates_that_do_not_fit(sentences: Any, predicates: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        small().fit(sentences, predicates)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[4]], "Sentence 1: a predicate is at word 4"),
        ([[True]], "Sentence 1: 'word' must be a whole number, got True"),
        ([1], r"Sentence 1 must have a list of the words that are predicates, such as \[3, 7\]; got 1"),
        ([[1], [1]], "There are 1 sentences and 2 predicate lists"),
    ],
)
def test_given_predicates_that_do_not_fit(given: Any, says: str, fitted: RoleLabeler) -> None:
    with pytest.raises(DataError, match=says):
        fitted.predict([WORDS], given)


def test_there_must_be_something_to_score(fitted: RoleLabeler) -> None:
    with pytest.raises(DataError, match="There are no sentences to score"):
        fitted.score([], [])


def test_parameters_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"network\.decoder"):
        small(decoder="greedy").fit(*sales(10))
    with pytest.raises(ConfigError, match=r"from 0 to below 1; got 1\.5"):
        small(validation_fraction=1.5).fit(*sales(10))
