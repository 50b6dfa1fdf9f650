"""The classifier of sentence pairs as scikit-learn's own tools use it, on pairs whose label one word decides."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import headstart
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.estimator import PairClassifier, Tagger, TextClassifier

Pairs = list[tuple[str, str]]
THINGS = ["film", "play", "song", "story", "garden", "actor", "city", "work"]
TELLING = {"entailment": "surely", "contradiction": "never", "neutral": "perhaps"}
SMALL: dict[str, Any] = {
    "cell": "none",
    "epochs": 1,
    "min_steps": 40,
    "learning_rate": 0.02,
    "settings": {"fitting": {"encoder_rate": 0.02}, "network": {"compare": 16}},
}


def statements(
    n: int, names: tuple[str, ...] = ("entailment", "contradiction"), seed: int = 0
) -> tuple[Pairs, list[str]]:
    rng = random.Random(seed)
    labels = [names[i % len(names)] for i in range(n)]
    pairs = []
    for name in labels:
        thing = rng.choice(THINGS)
        pairs.append((f"The {thing} is old .", f"The {thing} {TELLING[name]} is old ."))
    return pairs, labels


def small(**parameters: Any) -> PairClassifier:
    return PairClassifier(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def fitted() -> PairClassifier:
    return small().fit(*statements(80))


class Frame:
    """As a table of pandas: it iterates over the names of its columns, and becomes an array by rows."""

    def __init__(self, rows: Pairs) -> None:
        self.rows = rows

    def __iter__(self) -> Any:
        return iter(["premise", "hypothesis"])

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.rows, dtype=object)


def test_it_learns_and_its_classes_keep_their_type_and_order(fitted: PairClassifier) -> None:
    pairs, labels = statements(40, seed=1)
    assert is_classifier(fitted)
    assert fitted.classes_.tolist() == ["contradiction", "entailment"]
    assert fitted.score(pairs, labels) > 0.9
    probabilities = fitted.predict_proba(pairs)
    assert probabilities.shape == (40, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert fitted.predict(pairs).tolist() == fitted.classes_[probabilities.argmax(axis=1)].tolist()
    assert fitted.scores_.keys() == {"accuracy", "macro_f1"}
    assert fitted.n_iter_ >= 40
    assert fitted.predict([]).tolist() == []


def test_labels_may_be_numbers_and_are_ordered_as_numbers() -> None:
    pairs, labels = statements(90, tuple(TELLING))
    numbers = np.array([{"entailment": 10, "contradiction": -1, "neutral": 9}[label] for label in labels])
    estimator = small().fit(pairs, numbers)
    assert estimator.classes_.tolist() == [-1, 9, 10]
    assert estimator.predict(pairs[:3]).dtype == numbers.dtype
    assert estimator.score(pairs, numbers) > 0.9


def test_pairs_are_the_same_in_any_container(fitted: PairClassifier) -> None:
    pairs, _ = statements(6, seed=2)
    of_tuples = np.empty(6, dtype=object)
    of_tuples[:] = pairs
    expected = fitted.predict_proba(pairs)
    for given in ([list(pair) for pair in pairs], np.array(pairs), np.array(pairs, dtype=object), of_tuples):
        np.testing.assert_array_equal(fitted.predict_proba(given), expected)
    np.testing.assert_array_equal(fitted.predict_proba(Frame(pairs)), expected)
    np.testing.assert_array_equal(fitted.predict_proba(iter(pairs)), expected)


def test_the_same_seed_gives_the_same_classifier() -> None:
    pairs, labels = statements(40)
    first, second, other = (small(min_steps=5, random_state=seed).fit(pairs, labels) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.predict_proba(pairs), second.predict_proba(pairs))
    assert not np.array_equal(first.predict_proba(pairs), other.predict_proba(pairs))


def test_pairs_can_be_given_as_validation() -> None:
    pairs, labels = statements(40)
    held = statements(10, seed=3)
    estimator = small(validation_data=held).fit(pairs, labels)
    assert estimator.scores_["accuracy"] == estimator.score(*held)
    without = small(validation_fraction=0, min_steps=3, batch_size=40).fit(pairs, labels)
    assert (without.scores_, without.n_iter_) == ({}, 3)


# scikit-learn's tools.


@pytest.mark.parametrize("container", [list, np.array])
def test_cross_validation(container: Any) -> None:
    pairs, labels = statements(60)
    assert cross_val_score(small(), container(pairs), labels, cv=3).mean() > 0.8


def test_cross_validated_predictions_are_in_the_order_of_the_pairs() -> None:
    pairs, labels = statements(40)
    assert (cross_val_predict(small(), pairs, labels, cv=2) == np.array(labels)).mean() > 0.8


def test_grid_search_over_how_an_encoder_is_carried_over(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    pairs, labels = statements(24)
    estimator = small(pretrained=pretrained_runs["bert"], min_steps=2, cache=tmp_path)
    search = GridSearchCV(estimator, {"how": ["frozen", "finetune"]}, cv=2, error_score="raise").fit(pairs, labels)
    assert search.best_params_["how"] in ("frozen", "finetune")
    assert set(search.predict(pairs)) <= set(labels)


def test_a_clone_has_the_parameters_and_not_the_fit(fitted: PairClassifier) -> None:
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        other.predict([("A film .", "A play .")])


# Kept and carried about.


def test_pickled_and_copied_it_answers_the_same(fitted: PairClassifier) -> None:
    pairs, _ = statements(10, seed=5)
    pickled = pickle.dumps(fitted)
    assert b"headstart.estimator" in pickled
    for other in (pickle.loads(pickled), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.predict_proba(pairs), fitted.predict_proba(pairs))
        assert other.get_params() == fitted.get_params()
        assert other.classes_.dtype == fitted.classes_.dtype


def test_saved_and_loaded_predicts_the_same(fitted: PairClassifier, tmp_path: Path) -> None:
    pairs, _ = statements(10, seed=5)
    fitted.save(tmp_path / "model")
    loaded = PairClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(pairs), fitted.predict_proba(pairs))
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.scores_, loaded.n_iter_) == (fitted.scores_, fitted.n_iter_)
    assert headstart.load_task_model(tmp_path / "model").task.class_names == ["contradiction", "entailment"]
    for other in (TextClassifier, Tagger):
        with pytest.raises(CheckpointError, match="is a model for sentence pairs, not for"):
            other.load(tmp_path / "model")
    with pytest.raises(CheckpointError, match="is not empty"):
        fitted.save(tmp_path / "model")


def test_the_run_of_another_task_is_refused(tmp_path: Path) -> None:
    texts = ["A good film .", "A bad film ."] * 3
    TextClassifier(min_steps=2, validation_fraction=0).fit(texts, ["good", "bad"] * 3).save(tmp_path / "model")
    with pytest.raises(CheckpointError, match="is a model for text classification, not for sentence pairs"):
        PairClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("kind", [TextClassifier, PairClassifier])
def test_encoders_side_by_side_survive_pickling(
    kind: type[TextClassifier | PairClassifier], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    pairs, labels = statements(12)
    given: Any = pairs if kind is PairClassifier else [second for _, second in pairs]
    sources: list[Any] = [pretrained_runs["static"], pretrained_runs["elmo"]]
    estimator: Any = kind(sources, min_steps=2, epochs=1, validation_fraction=0, cache=tmp_path)
    estimator.fit(given, labels)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict_proba(given), estimator.predict_proba(given))


def test_a_pickle_writes_no_file_outside_the_run_directory(fitted: PairClassifier, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    state = fitted.__getstate__()
    state["files"] |= {str(outside): b"", "../outside.txt": b""}
    other = PairClassifier()
    other.__setstate__(state)
    assert not outside.exists()
    pairs, _ = statements(4)
    np.testing.assert_array_equal(other.predict_proba(pairs), fitted.predict_proba(pairs))


# Bad input: one clear sentence each.


@pytest.mark.parametrize(
    ("pairs", "labels", "says"),
    [
        ([("a", "b")] * 3, [0, 1], "There are 3 pairs and 2 labels; each pair needs one label"),
        ([("a", "b"), ("a", " ")], [0, 1], "Pair 2 of 2: the second text is empty"),
        ([("a", "b"), (None, "b")], [0, 1], "Pair 2 of 2: the first text is not a string; got None"),
        ([("a", "b"), ("a",)], [0, 1], r"Pair 2 of 2 must be two texts, \(first text, second text\); got \['a'\]"),
        (np.array([["a", "b", "c"]] * 2), [0, 1], r"Pair 1 of 2 must be two texts.*got \['a', 'b', 'c'\]"),
        (["ab", "cd"], [0, 1], r"Pair 1 of 2 must be two texts.*got \['ab'\]"),
        ([3, 4], [0, 1], r"Pair 1 of 2 must be two texts.*got \[3\]"),
        ("a pair", [0, 1], "A list of pairs is wanted, each two texts; got 'a pair'"),
        (None, [0, 1], "A list of pairs is wanted.*got None"),
        (np.array("a"), [0, 1], "A list of pairs is wanted.*got 'a'"),
        ({"a": "b"}, [0, 1], "A list of pairs is wanted"),
        ([("a", "b")] * 2, ["x", "x"], "At least two classes are needed; got 1 in 2 labels"),
        ([("a", "b")] * 2, None, "A list of labels is wanted, one for each pair"),
        ([("a", "b")] * 2, ["x", float("nan")], r"labels are missing \(NaN\)\. Leave these pairs out"),
        ([("a", "b")] * 2, np.array(["x", None], dtype=object), r"None or NaN\)\. Leave these pairs out"),
        ([("a", "b")] * 2, [[0, 1], [1, 0]], "one for each pair; got an array of shape"),
    ],
)
def test_pairs_and_labels_that_do_not_fit(pairs: Any, labels: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        small().fit(pairs, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"validation_fraction": 1.5}, ConfigError, "from 0 to below 1; got 1.5"),
        ({"validation_data": 3}, ConfigError, r"validation_data is a pair \(pairs, labels\); got 3"),
        ({"validation_data": ([], [])}, DataError, "validation_data holds no pair"),
        ({"validation_data": ([("a", "b")], ["entailmnt"])}, DataError, "Did you mean 'entailment'"),
        ({"cell": "lstn"}, ConfigError, "network.cell"),
        ({"settings": {"fitting": {"epoch": 3}}}, ConfigError, "Did you mean 'epochs'"),
        ({"settings": "x"}, ConfigError, "settings is a dictionary"),
        ({"random_state": "x"}, ConfigError, "random_state is a whole number"),
        ({"pretrained": "nowhere"}, CheckpointError, "nowhere"),
    ],
)
def test_parameters_that_do_not_fit(parameters: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        small(**parameters).fit(*statements(10))


def test_before_fit_it_says_so() -> None:
    for use in (PairClassifier().predict, PairClassifier().predict_proba):
        with pytest.raises(NotFittedError):
            use([("A film .", "A play .")])
    with pytest.raises(NotFittedError):
        PairClassifier().save("nowhere")
