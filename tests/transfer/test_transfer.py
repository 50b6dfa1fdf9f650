"""The verb as a whole: every start and every way to carry it over, what is left behind, and bad input."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import headstart
from headstart.checksums import SUMS
from headstart.errors import CheckpointError, ConfigError, DataError
from headstart.pretrained import Pretrained
from headstart.progress import Notice, result_of
from headstart.report.results_json import transfer_from_json, transfer_to_json
from headstart.tasks.classify import Classify, TextExample
from headstart.tasks.reading import ExamplesConfig
from headstart.transfer.classifier import Classifier, load_classifier
from headstart.transfer.evaluate import evaluate
from headstart.transfer.features import encoder_fingerprint
from headstart.transfer.fit import transfer_once
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.transfer.transfer import Transferred, transfer

# Encoders as small as these, after a few steps of pretraining, need large ones.
QUICK: dict[str, Any] = {
    "mix": {"norm": True},
    "fitting": {
        "min_steps": 300, "epochs": 0.1, "batch": 8, "learning_rate": 0.01, "encoder_rate": 0.005, "layer_decay": 1.0,
    },
}  # fmt: skip
WAYS = [("scratch", "frozen"), *((k, h) for k in ("static", "elmo", "bert") for h in ("frozen", "finetune", "gradual"))]
NEW_TEXTS = ["The cat likes the film , superb .", "Nobody forgets his work , boring ."]


def read(path: Path) -> list[TextExample]:
    return Classify.read(path, ExamplesConfig())


def source_of(kind: str, runs: dict[str, Path]) -> str | Path:
    return kind if kind == "scratch" else runs[kind]


def run(source: str | Path, how: str, labelled: tuple[Path, Path], out: Path, **options: Any) -> list[Any]:
    options = {"seeds": 1, "settings": QUICK, **options}
    return list(transfer(source=source, how=how, train=labelled[0], dev=labelled[1], out=out, **options))


@pytest.mark.parametrize(("kind", "how"), WAYS)
def test_every_start_learns_the_task_and_is_usable_at_once(
    kind: str, how: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    done = run(source_of(kind, pretrained_runs), how, labelled, tmp_path / "run")[-1]
    assert isinstance(done, Transferred)
    assert done.results.mean > 0.8
    assert not done.results.runs[0].collapsed
    classifier = load_classifier(tmp_path / "run")
    assert classifier.labels == ["bad", "good"]
    assert evaluate(tmp_path / "run", labelled[1])["accuracy"] == pytest.approx(done.results.mean, abs=0.03)
    assert classifier.predict_proba(NEW_TEXTS).sum(1) == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "how"), WAYS)
def test_predict_after_reload_equals_predict_before(
    kind: str, how: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    start = open_start(source_of(kind, pretrained_runs))
    train, dev = (read(path) for path in labelled)
    config = settings_for(Classify, start, how, {"fitting": {"min_steps": 3, "epochs": 0.1}})
    fitted = result_of(transfer_once(start, config, Classify.learn(train), train, dev, seed=0))
    before = Classifier(fitted.model).predict_proba(NEW_TEXTS)
    save_task_model(fitted.model, tmp_path / "run", {})
    assert (load_classifier(tmp_path / "run").predict_proba(NEW_TEXTS) == before).all()


@pytest.mark.parametrize("how", ["frozen", "finetune", "gradual"])
def test_an_elmo_with_ready_vectors_answers_after_reload_as_before(
    how: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    h5py = pytest.importorskip("h5py")
    files = result_of(headstart.export(pretrained_runs["elmo"], "elmo", tmp_path / "elmo", words=["film", "superb"]))
    with h5py.File(files / "token_embeddings.hdf5", "r+") as file:
        file["embedding"][...] = 1.0  # not what the characters give
    start = open_start(files)
    train, dev = (read(path) for path in labelled)
    config = settings_for(Classify, start, how, {"fitting": {"min_steps": 3, "epochs": 0.1}})
    fitted = result_of(transfer_once(start, config, Classify.learn(train), train, dev, seed=0, cache=tmp_path))
    before = Classifier(fitted.model).predict_proba(NEW_TEXTS)
    save_task_model(fitted.model, tmp_path / "run", {})
    assert (load_classifier(tmp_path / "run").predict_proba(NEW_TEXTS) == before).all()


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
@pytest.mark.parametrize("how", ["frozen", "finetune"])
def test_the_start_is_never_written_to_and_a_frozen_encoder_is_bit_identical(
    kind: str, how: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    start = open_start(pretrained_runs[kind])
    assert start.pretrained
    before = encoder_fingerprint(start.pretrained[0].encoder)
    train, dev = (read(path) for path in labelled)
    fitted = result_of(
        transfer_once(start, settings_for(Classify, start, how, QUICK), Classify.learn(train), train, dev, seed=0)
    )
    assert encoder_fingerprint(start.pretrained[0].encoder) == before
    assert (encoder_fingerprint(fitted.model.encoder) == before) == (how == "frozen")


def test_a_frozen_heads_epochs_do_no_encoder_work(
    labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = open_start(pretrained_runs["bert"])
    train, dev = (read(path) for path in labelled)
    config = settings_for(Classify, start, "frozen", QUICK)
    result_of(transfer_once(start, config, Classify.learn(train), train, dev, seed=0))

    def never(*arguments: Any) -> None:
        raise AssertionError("the encoder ran again")

    assert start.pretrained
    monkeypatch.setattr(type(start.pretrained[0].encoder), "forward", never)
    monkeypatch.setattr(Pretrained, "encode_rows", never)
    result_of(transfer_once(start, config, Classify.learn(train), train, dev, seed=1))


@pytest.mark.parametrize(("kind", "how"), [("scratch", "frozen"), ("elmo", "frozen"), ("bert", "finetune")])
def test_the_same_seed_gives_the_same_results(
    kind: str, how: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    source = source_of(kind, pretrained_runs)
    results = [run(source, how, labelled, tmp_path / name)[-1].results for name in ("one", "two")]
    timeless = [[replace(fit, seconds=0.0) for fit in result.runs] for result in results]
    assert timeless[0] == timeless[1]


def test_seeds_report_mean_spread_and_every_run(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    few = {"fitting": {"min_steps": 8, "epochs": 0.1, "batch": 8}}
    results = run("scratch", "frozen", labelled, tmp_path / "run", seeds=3, labels=20, settings=few)[-1].results
    scores = [fit.scores["accuracy"] for fit in results.runs]
    assert results.labels == 20
    assert results.mean == pytest.approx(sum(scores) / 3)
    assert results.spread == pytest.approx(torch.tensor(scores, dtype=torch.float64).std().item())
    assert scores[results.best_seed] == max(scores)
    written = json.loads((tmp_path / "run" / "results.json").read_text())
    assert written == json.loads(json.dumps(transfer_to_json(results)))
    assert written["accuracy"] == results.mean
    assert transfer_from_json(written) == results
    card = (tmp_path / "run" / "CARD.md").read_text()
    assert "over 3 seeds" in card
    assert "one seed only" not in card


def test_one_seed_says_so(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    assert run("scratch", "frozen", labelled, tmp_path / "run")[-1].results.spread is None
    assert "one seed only" in (tmp_path / "run" / "CARD.md").read_text()


def test_a_run_that_gives_every_text_one_label_is_flagged(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    stuck = {"fitting": {"min_steps": 1, "epochs": 0.01, "learning_rate": 1e-9, "encoder_rate": 1e-9}}
    results = run("scratch", "frozen", labelled, tmp_path / "run", settings=stuck)[-1].results
    assert results.runs[0].collapsed
    assert "one label only" in (tmp_path / "run" / "CARD.md").read_text()


def test_the_mix_is_saved_and_plotted(
    labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    settings = {**QUICK, "mix": {"place": "both", "pull": 0.1, "norm": True}}
    results = run(pretrained_runs["elmo"], "frozen", labelled, tmp_path / "run", settings=settings)[-1].results
    assert list(results.mix) == ["input", "output"]
    for mix in results.mix.values():
        assert len(mix.weights) == 3
        assert sum(mix.weights) == pytest.approx(1)
    assert "layer 2" in (tmp_path / "run" / "mix.svg").read_text()
    assert "Layer weights" in (tmp_path / "run" / "CARD.md").read_text()


def test_fine_tuning_measures_what_was_forgotten(
    labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    forgot = run(pretrained_runs["elmo"], "finetune", labelled, tmp_path / "run")[-1].results.forgetting
    assert forgot.before != forgot.after
    assert run(pretrained_runs["elmo"], "frozen", labelled, tmp_path / "frozen")[-1].results.forgetting is None


def test_long_texts_are_counted(labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    settings = {**QUICK, "longest": 4}
    results = run(pretrained_runs["bert"], "frozen", labelled, tmp_path / "run", settings=settings)[-1].results
    assert results.truncated == 120
    assert load_classifier(tmp_path / "run").read(NEW_TEXTS).truncated == 2


def test_a_disk_that_fills_while_the_model_is_saved_leaves_nothing(
    labelled: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_half(model: object, out: Path, record: object) -> None:
        (out / "source0").mkdir()
        raise CheckpointError("the disk is full")

    quick = {"settings": {"fitting": {"min_steps": 1, "epochs": 0.01}}}
    with monkeypatch.context() as full:
        full.setattr(sys.modules[transfer.__module__], "save_task_model", save_half)
        with pytest.raises(CheckpointError, match="the disk is full"):
            run("scratch", "frozen", labelled, tmp_path / "run", **quick)
    assert not (tmp_path / "run").exists()
    run("scratch", "frozen", labelled, tmp_path / "run", **quick)
    assert (tmp_path / "run" / "config.toml").is_file()


def test_without_dev_a_tenth_is_held_out(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    events = list(transfer(train=labelled[0], out=tmp_path / "run", seeds=1, settings=QUICK))
    assert any("8 of the 80 examples" in event.text for event in events if isinstance(event, Notice))
    assert events[-1].results.dev == 8
    assert events[-1].results.labels == 72


def test_a_classifier_that_was_never_trained_refuses(
    labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=r"pretrained encoder .* without a trained head"):
        load_classifier(pretrained_runs["bert"])
    run("scratch", "frozen", labelled, tmp_path / "run")
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("trained = true", "trained = false"))
    (tmp_path / "run" / SUMS).unlink()
    with pytest.raises(CheckpointError, match="never trained"):
        load_classifier(tmp_path / "run").predict(NEW_TEXTS)


def test_half_of_a_model_that_a_killed_fit_left_is_written_over(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("scratch", "frozen", labelled, out)
    whole = (out / "weights.safetensors").read_bytes()
    for name in (SUMS, "weights.safetensors", "config.toml"):  # the last ones that are written
        (out / name).unlink()
    with pytest.raises(CheckpointError, match="is not empty"):
        run("scratch", "frozen", labelled, out)
    (out / "state").mkdir()
    (out / "state" / "lock").touch()
    run("scratch", "frozen", labelled, out)
    assert (out / "weights.safetensors").read_bytes() == whole
    assert (out / SUMS).is_file()
    (out / "state").mkdir()
    (out / "state" / "lock").touch()  # killed after all was saved
    with pytest.raises(CheckpointError, match="already holds a run"):
        run("scratch", "frozen", labelled, out)


def test_texts_may_come_from_a_generator(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    run("scratch", "frozen", labelled, tmp_path / "run")
    classifier = load_classifier(tmp_path / "run")
    assert classifier.predict(text for text in NEW_TEXTS) == classifier.predict(NEW_TEXTS)
    assert (classifier.predict_proba(iter(NEW_TEXTS)) == classifier.predict_proba(NEW_TEXTS)).all()
    with pytest.raises(DataError, match="Text 2 of 2 is empty"):
        classifier.predict(iter(["fine", ""]))


def test_an_empty_text_cannot_be_classified(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    run("scratch", "frozen", labelled, tmp_path / "run")
    with pytest.raises(DataError, match="Text 2 of 2 is empty"):
        load_classifier(tmp_path / "run").predict(["fine", "  "])


@pytest.mark.parametrize("kind", ["scratch", "static", "elmo", "bert"])
def test_pooling_the_first_word_of_a_text_without_words_reads_no_neighbour(
    kind: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    settings = {"network": {"cell": "none", "pool": "first"}, "fitting": {"min_steps": 3, "epochs": 0.1}}
    run(source_of(kind, pretrained_runs), "frozen", labelled, tmp_path / "run", settings=settings)
    classifier = load_classifier(tmp_path / "run")
    wordless = "\u200b"
    alone = classifier.predict_proba([wordless])[0]
    for neighbour in NEW_TEXTS:
        for texts in ([wordless, neighbour], [neighbour, wordless]):
            found = classifier.predict_proba(texts)[texts.index(wordless)]
            assert found == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("kind", ["scratch", "static", "elmo", "bert"])
def test_a_lone_surrogate_is_classified_as_the_replacement_character(
    kind: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    settings = {"fitting": {"min_steps": 2, "epochs": 0.1}}
    run(source_of(kind, pretrained_runs), "finetune", labelled, tmp_path / "run", settings=settings)
    classifier = load_classifier(tmp_path / "run")
    found, wanted = (classifier.predict_proba([f"The film {character} ."]) for character in ("\ud800", "\ufffd"))
    assert (found == wanted).all()


def test_a_classifier_is_not_a_start(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    run("scratch", "frozen", labelled, tmp_path / "run")
    with pytest.raises(CheckpointError, match="is a task model"):
        headstart.load(tmp_path / "run")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_bad_input_is_refused_before_anything_is_written(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    train, dev = labelled
    unknown = write(tmp_path / "unknown.csv", "text,label\nfine,good\nfair,so-so\n")
    one = write(tmp_path / "one.csv", "text,label\nfine,good\nfair,good\n")
    other = write(tmp_path / "other.csv", "body,label\nfine,good\n")
    empty = write(tmp_path / "empty.csv", 'text,label\n" ",good\nfair,bad\n')
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"train": train, "dev": unknown}, DataError, "'so-so'"),
        ({"train": one, "dev": dev}, DataError, "at least two different labels"),
        ({"train": other, "dev": dev}, DataError, "text-field"),
        ({"train": empty, "dev": dev}, DataError, "text is empty"),
        ({"train": tmp_path / "missing.csv", "dev": dev}, DataError, "missing.csv"),
        ({"train": train, "dev": dev, "labels": 81}, DataError, "Asked for 81 labels, the file has 80"),
        ({"train": train, "dev": dev, "labels": 1}, ConfigError, "2 classes"),
        ({"train": train, "dev": dev, "seeds": 0}, ConfigError, "--seeds"),
        ({"train": train, "dev": dev, "source": tmp_path / "nowhere"}, CheckpointError, "nowhere"),
        ({"train": train, "dev": dev, "settings": {"network": {"cel": "gru"}}}, ConfigError, "Did you mean 'cell'"),
        ({"train": train, "dev": dev, "task": "sentimental"}, ConfigError, "Did you mean 'sentiment'"),
        ({"train": train, "dev": dev, "how": "fronzen"}, ConfigError, "Did you mean 'frozen'"),
    ]
    for options, error, message in cases:
        with pytest.raises(error, match=message):
            list(transfer(out=tmp_path / "run", **options))
        assert not (tmp_path / "run").exists()


def test_dev_examples_that_stand_in_train_are_counted(labelled: tuple[Path, Path], tmp_path: Path) -> None:
    events = run("scratch", "frozen", (labelled[0], labelled[0]), tmp_path / "run")
    assert any("80 dev examples also stand in train" in event.text for event in events if isinstance(event, Notice))


def test_more_than_two_labels_keep_their_names(tmp_path: Path) -> None:
    lines = [f'{{"text": "a {word} thing", "label": {n}}}' for n, word in enumerate(["red", "green", "blue"])] * 8
    path = write(tmp_path / "train.jsonl", "\n".join(lines))
    events = list(transfer(train=path, dev=path, out=tmp_path / "run", seeds=1, settings=QUICK))
    assert events[-1].results.classes == ["0", "1", "2"]
    assert load_classifier(tmp_path / "run").predict(["a blue thing", "a red thing"]) == ["2", "0"]


@pytest.mark.parametrize("how", ["frozen", "finetune", "gradual"])
def test_from_scratch_and_from_an_encoder_cannot_both_be_asked_for(
    how: str, labelled: tuple[Path, Path], pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"but elmo was given to start from\. Leave one of them out"):
        run(pretrained_runs["elmo"], how, labelled, tmp_path / "run", settings={"how": "scratch"})
    assert not (tmp_path / "run").exists()
    assert settings_for(Classify, open_start("scratch"), how, {"how": "scratch"}).how == "scratch"


def test_settings_are_those_of_the_start() -> None:
    scratch = settings_for(Classify, open_start("scratch"), "finetune")
    assert (scratch.how, scratch.network.cell, scratch.mix.kind) == ("scratch", "lstm", "last")
    assert ExamplesConfig().labels_as is None
