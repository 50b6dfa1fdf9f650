"""CorefResolver: documents and chains as users write them, scikit-learn's tools, kept and carried about."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import headstart
from headstart.errors import CheckpointError, DataError
from headstart.estimator import CorefResolver, Tagger
from headstart.transfer.estimator_coref import resolved_documents

SMALL: dict[str, Any] = {
    "min_steps": 80,
    "epochs": 0.1,
    "learning_rate": 0.02,
    "settings": {"network": {"width": 16, "hidden": 16}},
}
NAMES, THINGS = ["Anna", "Boris", "Cleo"], ["cars", "songs"]

Resolved = tuple[list[list[list[str]]], list[list[list[tuple[int, int]]]]]


def stories(n: int, seed: int = 0) -> Resolved:
    """A name comes back in the next sentence."""
    rng = random.Random(seed)
    documents: list[list[list[str]]] = []
    for _ in range(n):
        name, thing = rng.choice(NAMES), rng.choice(THINGS)
        documents.append([[name, "likes", thing, "."], [name, "left", "."]])
    return documents, [[[(0, 1), (4, 5)]] for _ in documents]


def small(**parameters: Any) -> CorefResolver:
    return CorefResolver(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def fitted() -> CorefResolver:
    return small().fit(*stories(12))


def test_it_learns_chains(fitted: CorefResolver) -> None:
    documents, chains = stories(6, seed=1)
    assert fitted.score(documents, chains) == 1
    assert fitted.predict(documents) == chains
    assert next(iter(fitted.scores_)) == "conll_f1"
    assert fitted.predict([]) == []


def test_a_text_is_split_and_its_mentions_stand_at_its_characters(fitted: CorefResolver) -> None:
    text = "Anna likes  cars . Anna left ."
    chains, none = fitted.predict([text, " "])
    assert [[one["text"] for one in chain] for chain in chains] == [["Anna", "Anna"]]
    assert [(one["start"], one["end"]) for one in chains[0]] == [(0, 4), (19, 23)]
    assert none == []


def test_chains_may_be_written_in_many_ways() -> None:
    documents = [[["a", "b"], ["c"]]]
    for given in ([[(0, 1), (2, 3)]], [[[2, 3], [0, 1]]], np.array([[[0, 1], [2, 3]]]), (((0, 1), (2, 3)),)):
        assert resolved_documents(documents, [given])[0].chains == (((0, 1), (2, 3)),)
    assert resolved_documents([np.array([["a", "b"], ["c", "d"]])], [[]])[0].sentences == ((0, 2), (2, 4))


def test_singletons_are_a_parameter() -> None:
    documents, chains = stories(8)
    with_singletons = [[*own, [(2, 3)]] for own in chains]
    for wanted in (None, False):
        learned = small(singletons=wanted, min_steps=150).fit(documents, with_singletons)
        assert learned.task_model_.task.to_table()["singletons"]
        found = [chain for own in learned.predict(documents) for chain in own]
        assert any(len(chain) == 1 for chain in found) == (wanted is None)
        assert any(len(chain) == 2 for chain in found)


def test_scikit_learn_tools(fitted: CorefResolver, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        other.predict([[["a"]]])
    documents, chains = stories(6)
    estimator = small(pretrained=pretrained_runs["bert"], min_steps=2, cache=tmp_path)
    search = GridSearchCV(estimator, {"how": ["frozen", "finetune"]}, cv=2, error_score="raise").fit(documents, chains)
    assert len(search.predict(documents)) == 6


def test_it_is_pickled_and_saved(fitted: CorefResolver, tmp_path: Path) -> None:
    documents, chains = stories(6, seed=2)
    copied: CorefResolver = pickle.loads(pickle.dumps(fitted))
    assert copied.predict(documents) == fitted.predict(documents)
    assert type(copied).__module__ == "headstart.estimator"
    fitted.save(tmp_path / "run")
    loaded = headstart.CorefResolver.load(tmp_path / "run")
    assert loaded.score(documents, chains) == fitted.score(documents, chains)
    assert loaded.get_params() == fitted.get_params()
    with pytest.raises(CheckpointError, match="is a model for coreference resolution, not for"):
        Tagger.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("documents", "chains", "says"),
    [
        ("a text", [], "A list of documents is wanted"),
        ([["a", "b"]], [[]], "Document 1 must be a list of sentences, each a list of words"),
        ([[["a", 3]]], [[]], "Document 1: 'sentences'"),
        ([[[]]], [[]], "Document 1: this document holds no word"),
        ([[["a"]]], [[], []], "There are 1 documents and 2 chain lists"),
        ([[["a"]]], [[[(0, 2)]]], "Document 1: a mention in 'chains' is .* the 1 words of the document; got"),
        ([[["a"]]], [[(0, 1)]], "Document 1: "),
        (["a text"], [[]], "Document 1 is a string"),
        ([[["a"]]], [[]], "no chain, so there is nothing to learn"),
    ],
)
def test_bad_input_is_one_sentence(documents: Any, chains: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        small(min_steps=2).fit(documents, chains)
