"""Encoders side by side: they meet at the words, each with its own mix, in one model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

import headstart
from headstart.errors import ConfigError
from headstart.progress import result_of
from headstart.tasks.base import Passage
from headstart.tasks.classify import Classify, TextExample
from headstart.transfer.fit import gather_features, transfer_once, untrained
from headstart.transfer.start import STACK, Start, open_start, settings_for, sources_in
from headstart.transfer.task_files import load_own, save_task_model
from headstart.transfer.task_model import TaskModel, kept_words

TEXTS = ["A warm , funny film .", "Dull unbelievably dull", "The acting is fine ; the plot is not .", "x", "don't"]
EXAMPLES = [TextExample(text, "good" if number % 2 else "bad") for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module", params=["static+bert", "bert+elmo", "static+elmo+bert"])
def start(request: pytest.FixtureRequest, pretrained_runs: dict[str, Path]) -> Start:
    return open_start("+".join(str(pretrained_runs[kind]) for kind in request.param.split("+")))


def fitted(start: Start, how: str = "frozen", **given: Any) -> TaskModel[Any, Any]:
    settings = {"fitting": {"min_steps": 3, "epochs": 1}, "network": {"width": 8}, **given}
    config = settings_for(Classify, start, how, settings)
    return result_of(transfer_once(start, config, Classify(("bad", "good")), EXAMPLES, EXAMPLES, seed=1)).model


def test_a_start_of_several_encoders(start: Start) -> None:
    assert start.kind == STACK
    assert start.name.count("+") == len(start.pretrained) - 1
    assert start.run is None
    assert start.made_here


def test_words_are_the_same_for_every_encoder_and_their_vectors_stand_side_by_side(start: Start) -> None:
    config = settings_for(Classify, start, "frozen")
    model = untrained(start, config, Classify(("bad", "good")), [])
    for text in TEXTS:
        rows = model.rows(Passage(text))
        assert len({len(row.word_starts) for (row,) in rows}) == 1
    tables = result_of(gather_features(start, model.task, EXAMPLES, config))
    words = [table.length(0) for table in tables]
    assert len(set(words)) == 1
    reads = model.model.head.recurrent
    assert reads is not None
    assert reads.input_size == sum(one.encoder.shape[1] for one in start.pretrained)


def test_features_and_texts_give_the_same_answers(start: Start) -> None:
    model = fitted(start)
    config = model.config
    tables = result_of(gather_features(start, model.task, EXAMPLES, config))
    with torch.no_grad():
        from_features = model.prepare(EXAMPLES, features=tables)[0].scores(range(len(TEXTS)))[0]
        from_texts = model.prepare(EXAMPLES)[0].scores(range(len(TEXTS)))[0]
    torch.testing.assert_close(from_features, from_texts, rtol=0, atol=1e-4)


@pytest.mark.parametrize("how", ["frozen", "finetune", "gradual"])
def test_saved_and_loaded_it_gives_the_same_bits(start: Start, how: str, tmp_path: Path) -> None:
    model = fitted(start, how)
    save_task_model(model, tmp_path / "run", {})
    loaded = load_own(tmp_path / "run")
    together = [answer.probabilities for answer in model.answers(EXAMPLES).answers]
    again = [answer.probabilities for answer in loaded.answers(EXAMPLES).answers]
    assert np.array_equal(together, again)
    alone = [loaded.answers([example]).answers[0].probabilities for example in EXAMPLES]
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)


def test_each_encoder_has_its_own_mix_and_its_own_standardising(start: Start) -> None:
    model = fitted(start).model
    assert [len(mix["input"]["weights"]) for mix in model.mix_weights()] == [e.shape[0] for e in model.encoders]
    assert all(reader.standardises for reader in model.each_reader)


def test_frozen_encoders_stay_as_they_were_and_tuned_ones_are_copies(start: Start) -> None:
    before = [tensor.clone() for one in start.pretrained for tensor in one.encoder.state_dict().values()]
    tuned = fitted(start, "finetune")
    after = [tensor for one in start.pretrained for tensor in one.encoder.state_dict().values()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    changed = [tensor for encoder in tuned.model.encoders for tensor in encoder.state_dict().values()]
    assert not all(torch.equal(a, b) for a, b in zip(before, changed, strict=True))


def test_layers_are_grouped_from_the_top(start: Start) -> None:
    model = untrained(start, settings_for(Classify, start, "finetune"), Classify(("bad", "good")), []).model
    groups = model.layer_groups()
    assert len(groups) == max(len(encoder.layer_groups()) for encoder in model.encoders)
    top = {id(p) for encoder in model.encoders for p in encoder.layer_groups()[-1]}
    assert {id(p) for p in groups[-1]} == top
    assert sum(map(len, groups)) == sum(1 for encoder in model.encoders for _ in encoder.parameters())


def test_a_long_text_is_cut_to_the_same_words_for_all(pretrained_runs: dict[str, Path]) -> None:
    start = open_start([pretrained_runs["static"], pretrained_runs["bert"]])
    model = untrained(start, settings_for(Classify, start, "frozen", {"longest": 9}), Classify(("bad", "good")), [])
    rows = model.rows(Passage(" ".join(f"unusual{n}" for n in range(40))))
    assert len(rows[0][0].word_starts) == len(rows[1][0].word_starts) < 40
    assert all(row.cut for (row,) in rows)
    assert len(rows[1][0].ids) <= 9 + start.pretrained[1].encoder.marks


def test_kept_words_by_hand() -> None:
    assert kept_words(np.array([1, 2, 3]), 6).tolist() == [0, 1, 2]
    assert kept_words(np.ones(7, dtype=np.int64), 5).tolist() == [0, 1, 2, 5, 6]
    assert kept_words(np.array([2, 2, 2, 2, 2]), 6).tolist() == [0, 4]
    assert kept_words(np.array([9, 1]), 6).tolist() == [0, 1]


def test_what_cannot_be_put_side_by_side_is_said(pretrained_runs: dict[str, Path]) -> None:
    for given in ("minilm+", "+minilm", "scratch+minilm"):
        with pytest.raises(ConfigError, match=r"wanted encoders with \+ between them"):
            sources_in(given)
    with pytest.raises(ConfigError, match="empty list"):
        sources_in([])
    start = open_start([pretrained_runs["static"], pretrained_runs["elmo"]])
    with pytest.raises(ConfigError, match="only words in common"):
        fitted(start, network={"cell": "none", "pool": "first"})


def test_an_estimator_takes_a_list(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    sources = [str(pretrained_runs["static"]), str(pretrained_runs["elmo"])]
    classifier = headstart.TextClassifier(sources, min_steps=3, epochs=1, validation_fraction=0, cache=tmp_path / "c")
    labels = [str(example.label) for example in EXAMPLES]
    classifier.fit(TEXTS, labels)
    classifier.save(tmp_path / "saved")
    loaded = headstart.TextClassifier.load(tmp_path / "saved")
    assert loaded.pretrained == sources
    assert np.array_equal(loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS))
    again = clone(loaded).set_params(cache=tmp_path / "c").fit(TEXTS, labels)
    assert again.predict(TEXTS).shape == (len(TEXTS),)
