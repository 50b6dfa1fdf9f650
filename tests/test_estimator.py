"""The classifier as scikit-learn's own tools use it, on texts whose label is told by one word."""

from __future__ import annotations

import copy
import pickle
import pickletools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import headstart
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.estimator import Tagger, TextClassifier
from headstart.progress import result_of
from headstart.tasks.examples import held_out_rows

THINGS = ["film", "play", "song", "story", "garden", "actor", "city", "work"]
TELLING = {"good": ["lovely", "great"], "bad": ["awful", "dull"], "plain": ["usual", "fair"]}
SMALL: dict[str, Any] = {
    "cell": "none",
    "pool": "mean",
    "epochs": 1,
    "min_steps": 40,
    "learning_rate": 0.02,
    "settings": {"fitting": {"encoder_rate": 0.02}},
}


def reviews(n: int, names: tuple[str, ...] = ("good", "bad"), seed: int = 0) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    labels = [names[i % len(names)] for i in range(n)]
    texts = [
        f"The {rng.choice(THINGS)} of the {rng.choice(THINGS)} is {rng.choice(TELLING[name])} ." for name in labels
    ]
    return texts, labels


def small(**parameters: Any) -> TextClassifier:
    return TextClassifier(**{**SMALL, **parameters})


@pytest.fixture(scope="module")
def fitted() -> TextClassifier:
    return small().fit(*reviews(80))


@pytest.fixture(scope="module")
def elmo(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("estimator") / "elmo"
    settings = {"encoder.cell": 16, "encoder.projection": 32, "training.batch": 200, "encoder.tokens": "characters"}
    list(headstart.pretrain("elmo", corpus, out=out, size="tiny", settings=settings, steps=6))
    return out


def test_it_learns_and_its_classes_keep_their_type_and_order(fitted: TextClassifier) -> None:
    texts, labels = reviews(40, seed=1)
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.score(texts, labels) > 0.9
    probabilities = fitted.predict_proba(texts)
    assert probabilities.shape == (40, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert fitted.predict(texts).tolist() == fitted.classes_[probabilities.argmax(axis=1)].tolist()
    assert fitted.scores_.keys() == {"accuracy", "macro_f1"}
    assert fitted.n_iter_ >= 40


def test_labels_may_be_numbers_and_are_ordered_as_numbers() -> None:
    texts, labels = reviews(90, ("good", "bad", "plain"))
    numbers = np.array([{"good": 10, "bad": -1, "plain": 9}[label] for label in labels])
    estimator = small().fit(np.array(texts, dtype=object), numbers)
    assert estimator.classes_.tolist() == [-1, 9, 10]
    assert estimator.predict(texts[:3]).dtype == numbers.dtype
    assert estimator.score(texts, numbers) > 0.9


def test_the_same_seed_gives_the_same_classifier_and_leaves_the_random_numbers_alone() -> None:
    texts, labels = reviews(40)
    state = torch.get_rng_state()
    first, second, other = (small(min_steps=10, random_state=seed).fit(texts, labels) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(first.predict_proba(texts), second.predict_proba(texts))
    assert not np.array_equal(first.predict_proba(texts), other.predict_proba(texts))


@pytest.mark.parametrize("how", ["frozen", "finetune"])
def test_a_pretrained_encoder_is_carried_over(how: str, elmo: Path, tmp_path: Path) -> None:
    texts, labels = reviews(60)
    rate = {"frozen": 0.1, "finetune": 0.02}[how]  # six steps of pretraining leave short vectors: long steps on them
    estimator = small(
        pretrained=elmo, how=how, mix="scalar", pool="max", learning_rate=rate, min_steps=60, cache=tmp_path
    )
    assert estimator.fit(texts, labels).score(*reviews(20, seed=1)) > 0.8
    assert len(estimator.mix_["input"]["weights"]) == 3
    assert (tmp_path / "features").is_dir() == (how == "frozen")


def test_candidates_of_a_search_share_the_features(elmo: Path, tmp_path: Path) -> None:
    texts, labels = reviews(20)
    for parameters in ({"cell": "gru"}, {"mix": "mean"}, {"validation_fraction": 0.3}, {"random_state": 7}):
        small(pretrained=elmo, cache=tmp_path, min_steps=2, **parameters).fit(texts, labels)
    assert len(list((tmp_path / "features").iterdir())) == 1


# What is held out.


def test_the_same_share_of_every_class_is_held_out_and_never_its_last_example() -> None:
    labels = ["a"] * 40 + ["b"] * 10 + ["c"] * 2 + ["d"]
    held = held_out_rows(labels, 0.1, seed=0)
    assert [sum(labels[row] == name for row in held) for name in "abcd"] == [4, 1, 1, 0]
    assert held != held_out_rows(labels, 0.1, seed=1)
    assert held_out_rows(labels, 0.0, seed=0) == set()


def test_without_validation_the_last_step_is_kept() -> None:
    estimator = small(validation_fraction=0, min_steps=5, batch_size=20).fit(*reviews(20))
    assert (estimator.scores_, estimator.n_iter_) == ({}, 5)


def test_a_pair_can_be_given_as_validation() -> None:
    texts, labels = reviews(40)
    held = reviews(10, seed=3)
    estimator = small(validation_data=held).fit(texts, labels)
    assert estimator.scores_["accuracy"] == estimator.score(*held)
    with pytest.raises(DataError, match=r"'goood', is not one of the classes in training\. Did you mean 'good'"):
        small(validation_data=(["A film ."], ["goood"])).fit(texts, labels)


# scikit-learn's tools.


def test_cross_validation() -> None:
    assert cross_val_score(small(), *reviews(60), cv=3).mean() > 0.8


def test_grid_search_takes_numpy_numbers_and_finds_the_setting_that_learns() -> None:
    still, moving = ({"fitting": {"encoder_rate": rate}} for rate in (1e-7, 2e-2))
    grid = {"settings": [still, moving], "learning_rate": np.array([1e-7]), "batch_size": np.array([16])}
    search = GridSearchCV(small(validation_fraction=0), grid, cv=2).fit(*reviews(60))
    assert search.best_params_["settings"] == moving
    assert search.best_score_ > 0.8


def test_a_pipeline_cleans_the_texts_first() -> None:
    texts, labels = reviews(60)
    shouted = [text.upper() + " <br />" for text in texts]
    cleaning = FunctionTransformer(lambda texts: [text.replace("<br />", "").lower() for text in texts])
    pipeline = Pipeline([("clean", cleaning), ("classify", small())]).fit(shouted, labels)
    assert pipeline.score(shouted, labels) > 0.9
    assert pipeline.set_params(classify__seed=4).get_params()["classify__seed"] == 4


def test_a_clone_has_the_parameters_and_not_the_fit(fitted: TextClassifier) -> None:
    other = clone(fitted.set_params(random_state=0))
    assert other.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        other.predict(["A film ."])


# Kept and carried about.


def test_pickle_goes_through_the_run_directory_and_holds_no_tensor(fitted: TextClassifier) -> None:
    texts, _ = reviews(10, seed=5)
    pickled = pickle.dumps(fitted)
    names = {argument for _, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)}
    assert not {name for name in names if name.split(".")[0] == "torch"}
    assert "weights.safetensors" in names
    for other in (pickle.loads(pickled), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.predict_proba(texts), fitted.predict_proba(texts))
        assert other.get_params() == fitted.get_params()
        assert other.classes_.dtype == fitted.classes_.dtype
    assert pickle.loads(pickle.dumps(small(random_state=3))).random_state == 3


def test_saved_and_loaded_predicts_the_same(fitted: TextClassifier, tmp_path: Path) -> None:
    texts, _ = reviews(10, seed=5)
    fitted.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(texts), fitted.predict_proba(texts))
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.scores_, loaded.n_iter_) == (fitted.scores_, fitted.n_iter_)
    with pytest.raises(CheckpointError, match="is not empty"):
        fitted.save(tmp_path / "model")


def test_numbers_are_still_numbers_after_loading(tmp_path: Path) -> None:
    texts, labels = reviews(20)
    numbers = [int(label == "good") for label in labels]
    pair = (texts[:4], numbers[:4])
    small(min_steps=2, validation_data=pair, cache=tmp_path / "cache").fit(texts, numbers).save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    assert loaded.predict(texts[:1])[0] in (0, 1)
    assert loaded.classes_.dtype == np.array(numbers).dtype
    assert loaded.validation_data is None


def test_a_classifier_saved_without_an_estimator_has_its_labels_as_classes(
    fitted: TextClassifier, tmp_path: Path
) -> None:
    fitted.classifier_.save(tmp_path, {})
    loaded = TextClassifier.load(tmp_path)
    assert loaded.classes_.tolist() == ["bad", "good"]
    assert loaded.predict(["The film is great ."]) == fitted.predict(["The film is great ."])


# Bad input: one clear sentence each.


def test_before_fit_it_says_so() -> None:
    for use in (TextClassifier().predict, TextClassifier().predict_proba):
        with pytest.raises(NotFittedError):
            use(["A film ."])
    with pytest.raises(NotFittedError):
        TextClassifier().save("nowhere")


@pytest.mark.parametrize(
    ("texts", "labels", "says"),
    [
        (["a", "b", "c"], [0, 1], "3 texts and 2 labels"),
        (["a", " ", "c"], [0, 1, 0], "Text 2 of 3 is empty"),
        (["a", None], [0, 1], "Text 2 of 2 is not a string; got None"),
        ("a film", [0, 1], "one text was given"),
        (["a", "b"], ["good", "good"], "At least two classes are needed; got 1 in 2 labels"),
        (["a", "b"], [0.5, 1.0], "whole numbers or strings"),
        (["a", "b"], [[0, 1], [1, 0]], r"an array of shape \(2, 2\)"),
        (["a", "b"], np.array([1, None], dtype=object), "labels are missing"),
    ],
)
def test_texts_and_labels_that_do_not_fit(texts: Any, labels: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        small().fit(texts, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"validation_fraction": 1.5}, "from 0 to below 1; got 1.5"),
        ({"validation_fraction": "some"}, "a share of the examples"),
        ({"cell": "lstn"}, "network.cell"),
        ({"settings": {"fitting": {"epoch": 3}}}, "Did you mean 'epochs'"),
    ],
)
def test_settings_that_do_not_exist(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        small(**parameters).fit(*reviews(10))


def test_a_start_that_does_not_exist(fitted: TextClassifier) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        small(pretrained="nowhere").fit(*reviews(10))
    with pytest.raises(DataError, match="Text 2 of 2 is empty"):
        fitted.predict(["A film .", ""])
    assert fitted.predict([]).tolist() == []


def test_old_names_of_parameters_work_and_warn() -> None:
    texts, labels = reviews(20)
    new = small(min_steps=3, random_state=3, batch_size=4, validation_fraction=0.2).fit(texts, labels)
    with pytest.warns(FutureWarning) as caught:
        old = small(min_steps=3, random_state=0, seed=3, batch=4, validation=0.2).fit(texts, labels)
    assert {str(warning.message).split("'")[1] for warning in caught} == {"seed", "batch", "validation"}
    assert np.array_equal(old.predict_proba(texts), new.predict_proba(texts))
    with pytest.warns(FutureWarning, match="validation"):
        pair = small(min_steps=3, validation=(texts[:4], labels[:4])).fit(texts, labels)
    assert pair.scores_


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_random_state_may_be_none_or_a_generator(random_state: object) -> None:
    assert small(min_steps=2, random_state=random_state).fit(*reviews(20)).n_iter_ >= 2


def test_fit_works_where_the_host_has_turned_gradients_off() -> None:
    texts, labels = reviews(20)
    with torch.no_grad():
        off = small(min_steps=5).fit(texts, labels)
    assert np.array_equal(off.predict_proba(texts), small(min_steps=5).fit(texts, labels).predict_proba(texts))


def test_two_fits_in_two_threads_are_as_each_alone() -> None:
    texts, labels = reviews(40)
    alone = small(min_steps=20).fit(texts, labels).predict_proba(texts)
    with ThreadPoolExecutor(2) as pool:
        fits = [pool.submit(small(min_steps=20).fit, texts, labels) for _ in range(2)]
        together = [fit.result().predict_proba(texts) for fit in fits]
    for found in together:
        np.testing.assert_allclose(found, alone, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: small().fit(None, None), "list of labels is wanted"),
        (lambda: small().fit(["a", "b"], None), "list of labels is wanted"),
        (lambda: small().fit(["a", "b"], ["x", float("nan")]), "labels are missing"),
        (lambda: small(settings="x").fit(*reviews(20)), "settings is a dictionary"),
        (lambda: small(random_state="x").fit(*reviews(20)), "random_state is a whole number"),
        (lambda: small(validation_data=([], [])).fit(*reviews(20)), "holds no text"),
        (lambda: small(epochs=float("inf")).fit(*reviews(20)), "finite"),
        (lambda: small(min_steps=2).fit(*reviews(20)).predict(None), "list of texts is wanted"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_a_value_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_tagger_is_an_estimator(tmp_path: Path, make_tagged: Callable[..., Any]) -> None:
    sentences, tags = map(list, zip(*make_tagged(40, 1), strict=True))
    tagger = Tagger(min_steps=150, learning_rate=0.02, validation_fraction=0.2)
    assert clone(tagger).get_params() == tagger.get_params()
    tagger.fit(sentences, tags)
    assert tagger.score(sentences, tags) > 0.9
    assert set(tagger.labels_) == {"O", *(f"{p}-{t}" for p in "BI" for t in ("PER", "LOC", "ORG"))}
    found = tagger.predict(sentences)
    assert [len(row) for row in found] == [len(row) for row in tags]
    tagger.save(tmp_path / "tagger")
    for again in (pickle.loads(pickle.dumps(tagger)), Tagger.load(tmp_path / "tagger")):
        assert again.predict(sentences) == found
    text = "the cat likes garden ."
    (entities,) = tagger.entities([text])
    assert [(text[e["start"] : e["end"]], e["type"]) for e in entities] == [("garden", "LOC")]
    with pytest.raises(CheckpointError, match="not for text classification"):
        TextClassifier.load(tmp_path / "tagger")
    with pytest.raises(DataError, match="3 words and 2 tags"):
        Tagger().fit([["a", "b", "c"]] * 2, [["O", "O"]] * 2)
    with pytest.raises(DataError, match="list of sentences"):
        tagger.predict("one string")


@pytest.mark.parametrize("kind", ["scratch", "bert"])
def test_a_lone_surrogate_is_tagged_like_any_word_nobody_knows(
    kind: str, make_tagged: Callable[..., Any], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    sentences, tags = map(list, zip(*make_tagged(10, 1), strict=True))
    strange = ["the", "cat", "\ud800"]
    pretrained = {"scratch": "scratch", **pretrained_runs}[kind]
    tagger = Tagger(pretrained, min_steps=2, epochs=0.1, cache=tmp_path)
    tagger.fit([*sentences, strange, " ".join(strange)], [*tags, ["O"] * 3, ["O"] * 3])
    assert tagger.predict([strange, " ".join(strange)]) == tagger.predict([["the", "cat", "\ufffd"], "the cat \ufffd"])
    tagger.save(tmp_path / "tagger")
    assert Tagger.load(tmp_path / "tagger").predict([strange]) == tagger.predict([strange])


def test_a_sentence_without_words_is_refused_for_training_and_has_no_tags(make_tagged: Callable[..., Any]) -> None:
    sentences, tags = map(list, zip(*make_tagged(10, 1), strict=True))
    for wordless in ("", "\u200b"):
        with pytest.raises(DataError, match=r"^Sentence 11 has no words, so there is nothing to tag\. Leave it out\.$"):
            Tagger(min_steps=2).fit([*sentences, wordless], [*tags, []])
    tagger = Tagger(min_steps=2, epochs=0.1).fit(sentences, tags)
    assert [len(row) for row in tagger.predict(["", "the cat", ""])] == [0, 2, 0]


def test_a_word_with_a_line_break_can_be_learned_saved_and_opened(
    make_tagged: Callable[..., Any], tmp_path: Path
) -> None:
    sentences, tags = map(list, zip(*make_tagged(10, 1), strict=True))
    broken = ["New\nYork", "fell\r\n"]
    tagger = Tagger(min_steps=2, epochs=0.1).fit([*sentences, broken], [*tags, ["B-LOC", "O"]])
    tagger.save(tmp_path / "tagger")
    loaded = Tagger.load(tmp_path / "tagger")
    assert {"New York", "fell"} <= set(loaded.task_model_.tokenizer.vocabulary.words)
    assert loaded.predict([broken]) == tagger.predict([["New York", "fell"]])


def test_sentences_that_differ_only_in_where_words_end_are_read_apart(
    make_tagged: Callable[..., Any], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    sentences, tags = map(list, zip(*make_tagged(10, 1), strict=True))
    alike, tags_of = [["old actor"], ["old", "actor"], "old actor"], [["B-PER"], ["B-PER", "I-PER"], ["B-PER", "I-PER"]]
    for held_out in (0, 0.3):
        tagger = Tagger(pretrained_runs["bert"], min_steps=2, epochs=0.1, cache=tmp_path, validation_fraction=held_out)
        tagger.fit([*sentences, *alike], [*tags, *tags_of])
    assert len(list((tmp_path / "features").iterdir())) == 1
    assert [len(row) for row in tagger.predict(alike)] == [1, 2, 2]


@pytest.mark.parametrize("as_given", [str, Path])
def test_several_files_to_start_from_survive_saving_cloning_and_fitting_again(
    as_given: Callable[[Path], str | Path], elmo: Path, tmp_path: Path
) -> None:
    pytest.importorskip("h5py")
    folder = result_of(headstart.export(elmo, "elmo", tmp_path / "files"))
    files = tuple(as_given(folder / name) for name in ("options.json", "weights.hdf5"))
    texts, labels = reviews(20)
    fitted = clone(small(pretrained=files, min_steps=2, cache=tmp_path / "cache")).fit(texts, labels)
    fitted.save(tmp_path / "model")
    for again in (TextClassifier.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
        assert tuple(map(str, again.pretrained)) == tuple(map(str, files))
        np.testing.assert_array_equal(again.fit(texts, labels).predict_proba(texts), fitted.predict_proba(texts))
