"""The estimator of question answering as scikit-learn's own tools use it, on contexts with one town in each."""

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
from headstart.estimator import PairClassifier, QuestionAnswerer
from headstart.transfer.estimator_input import answered_questions

PEOPLE = ["Anna", "Ben", "Clara", "David", "Emma", "Felix"]
TOWNS = ["Paris", "Rome", "Oslo", "New York", "Bonn", "Cape Town"]
SMALL: dict[str, Any] = {"epochs": 1, "min_steps": 80, "learning_rate": 0.01, "settings": {"network": {"width": 8}}}
CONTEXT = "Rome is old, and Rome is large."
ONE = [("What is old?", CONTEXT)]


def letters(n: int, seed: int = 0, unanswered: bool = False) -> tuple[list[tuple[str, str]], list[str]]:
    """Questions about where somebody lives; with `unanswered`, every third context does not tell."""
    rng = random.Random(seed)
    questions, answers = [], []
    for number in range(n):
        person, town = rng.choice(PEOPLE), rng.choice(TOWNS)
        told = not unanswered or number % 3 > 0
        context = f"{person} lives in {town}, says the letter." if told else f"{person} sings, says the letter."
        questions.append((f"Where does {person} live?", context))
        answers.append(town if told else "")
    return questions, answers


def small(**parameters: Any) -> QuestionAnswerer:
    return QuestionAnswerer(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def fitted() -> QuestionAnswerer:
    return small().fit(*letters(60))


@pytest.fixture(scope="module")
def may_leave_open() -> QuestionAnswerer:
    return small().fit(*letters(60, unanswered=True))


def test_it_learns_and_answers_with_parts_of_the_context(fitted: QuestionAnswerer) -> None:
    questions, answers = letters(30, seed=1)
    predicted = fitted.predict(questions)
    assert fitted.score(questions, answers) > 0.9
    assert all(answer and answer in context for answer, (_, context) in zip(predicted, questions, strict=True))
    assert next(iter(fitted.scores_)) == "f1"
    assert fitted.n_iter_ >= 80
    assert fitted.predict([]) == []


def test_questions_without_answer_are_learned_too(may_leave_open: QuestionAnswerer) -> None:
    questions, answers = letters(30, seed=1, unanswered=True)
    predicted = may_leave_open.predict(questions)
    assert may_leave_open.score(questions, answers) > 0.9
    assert "" in predicted
    assert any(predicted)


def test_answers_tell_where_they_are_and_the_first_is_the_predicted_one(
    fitted: QuestionAnswerer, may_leave_open: QuestionAnswerer
) -> None:
    questions, _ = letters(9, seed=2, unanswered=True)
    questions[1] = ("Where does Anna live?", "😀 é\r\n Anna\tlives in Rome, and Ben\u2009lives in Rome.")
    for estimator in (fitted, may_leave_open):
        found = estimator.answers(questions, n_best=4)
        assert [best[0]["text"] for best in found] == estimator.predict(questions)
        assert estimator.answers(questions) == [best[:1] for best in found]
        for best, (_, context) in zip(found, questions, strict=True):
            assert len(best) == 4
            shares = [one["probability"] for one in best]
            assert all(0 <= share <= 1 for share in shares)
            assert shares[1:] == sorted(shares[1:], reverse=True)
            assert sum(shares) <= 1 + 1e-6
            for one in best:
                place = (None, None) if one["text"] == "" else (one["start"], one["end"])
                assert (one["start"], one["end"]) == place
                assert one["text"] == "" or one["text"] == context[one["start"] : one["end"]]
    every = may_leave_open.answers(questions, n_best=50)
    assert all(sum(one["text"] == "" for one in best) == 1 for best in every)
    assert all(sum(one["probability"] for one in best) == pytest.approx(1) for best in every)
    assert not any(one["text"] == "" for best in fitted.answers(questions, n_best=50) for one in best)


def test_questions_are_the_same_in_any_container(fitted: QuestionAnswerer) -> None:
    questions, _ = letters(5, seed=3)
    expected = fitted.answers(questions)
    keyed = [{"context": context, "question": question} for question, context in questions]
    for given in (keyed, [list(row) for row in questions], np.array(questions), np.array(keyed), iter(questions)):
        assert fitted.answers(given) == expected


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        ("Rome", [0]),
        (("Rome", 17), [17]),
        (("Rome", np.int64(17)), [17]),
        (["Rome", 17], [17]),
        ({"text": "Rome", "answer_start": 17}, [17]),
        ({"text": "Rome", "start": 17, "end": 21, "probability": 0.5}, [17]),
        ({"text": "Rome"}, [0]),
        ({"text": ["Rome", "Rome"], "answer_start": [0, 17]}, [0, 17]),
        ({"text": [], "answer_start": []}, []),
        ([("Rome", 17), {"text": "Rome", "answer_start": 0}, "old"], [17, 0, 8]),
        (("Rome", "old"), [0, 8]),
        (np.array(["Rome", "old"]), [0, 8]),
        (None, []),
        ("", []),
        ([], []),
        ({"text": "", "start": None, "end": None}, []),
    ],
)
def test_answers_may_be_written_in_many_ways(answer: Any, places: list[int]) -> None:
    (question,) = answered_questions(ONE, [answer])
    assert question.answers is not None
    assert [gold.start for gold in question.answers] == places
    assert all(CONTEXT.startswith(gold.text, gold.start) for gold in question.answers)


def test_several_right_answers_count_as_the_best_of_them(fitted: QuestionAnswerer) -> None:
    questions, _ = letters(4, seed=4)
    predicted = fitted.predict(questions)
    assert fitted.score(questions, [["letter", answer] for answer in predicted]) == 1
    assert fitted.score(questions, ["letter"] * 4) == 0
    assert fitted.score(questions, [None] * 4) == 0
    with pytest.raises(DataError, match="There are no questions to score"):
        fitted.score([], [])


def test_the_same_seed_gives_the_same_answers() -> None:
    questions, answers = letters(20)
    first, second, other = (small(min_steps=4, random_state=seed).fit(questions, answers) for seed in (1, 1, 2))
    assert first.answers(questions) == second.answers(questions)
    assert first.answers(questions) != other.answers(questions)


def test_questions_with_and_without_answer_are_held_out_in_proportion() -> None:
    estimator = small(validation_fraction=0.5)
    whole = answered_questions(*letters(12, unanswered=True))
    train, dev = estimator._hold_out(whole, 0.5, seed=0)
    assert dev is not None
    assert [sum(not question.answers for question in part) for part in (train, dev)] == [2, 2]


def test_a_long_context_is_read_in_windows(fitted: QuestionAnswerer) -> None:
    questions, answers = letters(20)
    long = [(question, "Nobody sings here. " * 20 + context) for question, context in questions]
    estimator = small(min_steps=60, longest=24, stride=8).fit(questions, answers)
    assert (estimator.task_model_.longest, estimator.task_model_.stride) == (24, 8)
    for best, (_, context) in zip(estimator.answers(long), long, strict=True):
        assert best[0]["text"] == context[best[0]["start"] : best[0]["end"]]


# scikit-learn's tools.


def test_cross_validation() -> None:
    questions, answers = letters(40)
    assert cross_val_score(small(), questions, answers, cv=2).mean() > 0.6


def test_a_fold_that_was_trained_on_answered_questions_only_is_wrong_about_the_others() -> None:
    questions, answers = letters(12, unanswered=True)
    answered = [row for row in range(12) if answers[row]]
    unanswered = [row for row in range(12) if not answers[row]]
    assert cross_val_score(small(min_steps=2), questions, answers, cv=[(answered, unanswered)]).tolist() == [0.0]


def test_grid_search_over_how_an_encoder_is_carried_over(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    questions, towns = letters(12, unanswered=True)
    pairs = zip(towns, questions, strict=True)
    answers = [[(town, context.find(town))] if town else None for town, (_, context) in pairs]
    estimator = small(pretrained=pretrained_runs["bert"], min_steps=2, epochs=0.1, cache=tmp_path)
    search = GridSearchCV(estimator, {"how": ["frozen", "finetune"]}, cv=2, error_score="raise")
    search.fit(questions, answers)
    assert search.best_params_["how"] in ("frozen", "finetune")
    assert len(search.predict(questions)) == 12


def test_a_clone_has_the_parameters_and_not_the_fit(fitted: QuestionAnswerer) -> None:
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        other.predict(ONE)


# Kept and carried about.


def test_pickled_and_copied_it_answers_the_same(may_leave_open: QuestionAnswerer) -> None:
    questions, _ = letters(9, seed=5, unanswered=True)
    for other in (pickle.loads(pickle.dumps(may_leave_open)), copy.deepcopy(may_leave_open)):
        assert other.answers(questions, 3) == may_leave_open.answers(questions, 3)
        assert other.get_params() == may_leave_open.get_params()


def test_saved_and_loaded_it_answers_the_same(may_leave_open: QuestionAnswerer, tmp_path: Path) -> None:
    questions, _ = letters(9, seed=5, unanswered=True)
    may_leave_open.save(tmp_path / "model")
    loaded = QuestionAnswerer.load(tmp_path / "model")
    assert loaded.answers(questions, 3) == may_leave_open.answers(questions, 3)
    assert loaded.get_params() == may_leave_open.get_params()
    assert (loaded.scores_, loaded.n_iter_) == (may_leave_open.scores_, may_leave_open.n_iter_)
    assert headstart.load_task_model(tmp_path / "model").task == may_leave_open.task_model_.task
    with pytest.raises(CheckpointError, match="is a model for question answering, not for sentence pairs"):
        PairClassifier.load(tmp_path / "model")
    with pytest.raises(CheckpointError, match="is not empty"):
        may_leave_open.save(tmp_path / "model")


def test_the_run_of_another_task_is_refused(tmp_path: Path) -> None:
    pairs = [("A film .", "A play ."), ("A play .", "A song .")] * 3
    PairClassifier(min_steps=2, validation_fraction=0).fit(pairs, [0, 1] * 3).save(tmp_path / "model")
    with pytest.raises(CheckpointError, match="is a model for sentence pairs, not for question answering"):
        QuestionAnswerer.load(tmp_path / "model")


# Bad input: one clear sentence each.

FORMS = r"Question 1 of 1: an answer is a string, \(text, start\) or .* got "


@pytest.mark.parametrize(
    ("questions", "answers", "says"),
    [
        (ONE, ["Paris"], "^Question 1 of 1: the answer 'Paris' does not occur in the context.$"),
        (ONE * 2, ["Rome", ["Rome", "Paris"]], "^Question 2 of 2: the answer 'Paris' does not occur in the context.$"),
        (ONE, [("Rome", 3)], "Question 1 of 1: the answer 'Rome' is not at character 3 .* it occurs at character 0"),
        (ONE, [("Rome", -1)], "Question 1 of 1: the answer 'Rome' is not at character -1"),
        (ONE, [("Rome", 99)], "Question 1 of 1: the answer 'Rome' is not at character 99"),
        (ONE, [["Rome", ""]], "Question 1 of 1: an answer is empty"),
        (ONE, [" "], "Question 1 of 1: an answer is empty"),
        (ONE, [7], FORMS + "7"),
        (ONE, [float("nan")], FORMS + "nan"),
        (ONE, [("Rome", 1.5)], FORMS),
        (ONE, [{"text": "Rome", "answer_start": "0"}], FORMS),
        (ONE, [{"answer": "Rome"}], FORMS),
        (ONE, [{"text": ["Rome"], "answer_start": []}], "Question 1 of 1: 1 answers have 0 values of 'answer_start'"),
        (ONE, ["Rome", "Rome"], "There are 1 questions and 2 answers; each question needs one answer"),
        (ONE, None, "A list of answers is wanted"),
        (ONE, "Rome", "A list of answers is wanted.*got 'Rome'"),
        (ONE, {"text": ["Rome"]}, "A list of answers is wanted"),
        (ONE, [None], "No training question has an answer"),
        (None, ["Rome"], "A list of questions is wanted"),
        (("What is old?", CONTEXT), ["Rome"] * 2, r"Question 1 of 2 must be two texts, \(question, context\); got"),
        ([("What?", " ")], ["Rome"], "Question 1 of 1: the context is empty"),
        ([("", CONTEXT)], ["Rome"], "Question 1 of 1: the question is empty"),
        ([("What?", None)], ["Rome"], "Question 1 of 1: the context is not a string; got None"),
        ([{"question": "What?", "text": "b"}], ["Rome"], "Question 1 of 1 has no 'context'; it has question, text"),
        ([{}], ["Rome"], "Question 1 of 1 has no 'question'; it has nothing"),
    ],
)
def test_questions_and_answers_that_do_not_fit(questions: Any, answers: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        small().fit(questions, answers)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"validation_fraction": 1.5}, ConfigError, "from 0 to below 1; got 1.5"),
        ({"longest": 0}, ConfigError, "longest"),
        ({"cell": "lstn"}, ConfigError, "network.cell"),
        ({"settings": {"fitting": {"epoch": 3}}}, ConfigError, "Did you mean 'epochs'"),
        ({"settings": "x"}, ConfigError, "settings is a dictionary"),
        ({"random_state": "x"}, ConfigError, "random_state is a whole number"),
        ({"pretrained": "nowhere"}, CheckpointError, "nowhere"),
    ],
)
def test_parameters_that_do_not_fit(parameters: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        small(**parameters).fit(*letters(10))


@pytest.mark.parametrize("n_best", [0, -1, 1.5, True, "x"])
def test_the_number_of_answers_is_a_whole_number(n_best: Any, fitted: QuestionAnswerer) -> None:
    with pytest.raises(ConfigError, match="n_best is a whole number, at least 1; got"):
        fitted.answers(ONE, n_best)


def test_before_fit_it_says_so() -> None:
    for use in (QuestionAnswerer().predict, QuestionAnswerer().answers):
        with pytest.raises(NotFittedError):
            use(ONE)
    with pytest.raises(NotFittedError):
        QuestionAnswerer().score(ONE, ["Rome"])
    with pytest.raises(NotFittedError):
        QuestionAnswerer().save("nowhere")
