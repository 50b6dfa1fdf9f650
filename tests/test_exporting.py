"""Out into other tools' files: the same outputs there, and nothing half-written here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headstart
from headstart.batches.rows import Joined, collate
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.errors import CheckpointError, ConfigError, HeadstartError
from headstart.pretrained import Pretrained, save_run
from headstart.progress import Notice, result_of
from headstart.tasks import task_class
from headstart.tasks.base import Passage
from headstart.tasks.conll import TaggedSentence
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.transfer.start import open_start, settings_for
from headstart.transfer.task_files import save_task_model
from headstart.transfer.task_model import TaskModel, build_model
from headstart.weights import huggingface

transformers = pytest.importorskip("transformers")
TEXTS = ["the cat likes the film , superb .", "nobody watches a new story , dull .", "moving"]
FIT = {"fitting": {"min_steps": 4, "epochs": 1.0}}


def classifier_run(pretrained: Path, labelled: tuple[Path, Path], out: Path, **network: str) -> Path:
    train, dev = labelled
    list(
        headstart.transfer(
            source=pretrained, how="finetune", train=train, dev=dev, out=out, seeds=1, settings={**FIT, **network}
        )
    )
    return out


@pytest.fixture(scope="module")
def plain(
    pretrained_runs: dict[str, Path], labelled: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("plain") / "run"
    return classifier_run(pretrained_runs["bert"], labelled, out, network={"cell": "none", "pool": "first"})  # type: ignore[arg-type]


def test_a_plain_classifier_gives_transformers_the_same_probabilities(plain: Path, tmp_path: Path) -> None:
    folder = result_of(headstart.export(plain, "hf", tmp_path / "hf"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        theirs = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.softmax(-1).numpy()
    ours = headstart.load_classifier(plain)
    assert [model.config.id2label[i] for i in range(2)] == ours.labels
    assert np.allclose(ours.predict_proba(TEXTS), theirs, atol=1e-5)


def test_their_classifier_predicts_here(plain: Path, tmp_path: Path) -> None:
    folder = result_of(headstart.export(plain, "hf", tmp_path / "hf"))
    back = headstart.load_classifier(folder)
    assert np.array_equal(back.predict_proba(TEXTS), headstart.load_classifier(plain).predict_proba(TEXTS))


def test_a_head_of_our_own_kind_goes_out_as_onnx_only(
    pretrained_runs: dict[str, Path], labelled: tuple[Path, Path], tmp_path: Path
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = classifier_run(pretrained_runs["bert"], labelled, tmp_path / "run")
    with pytest.raises(ConfigError, match=r"not the plain one.*--to onnx.*--pool first"):
        result_of(headstart.export(run, "hf", tmp_path / "hf"))
    assert not (tmp_path / "hf").exists()
    folder = result_of(headstart.export(run, "onnx", tmp_path / "onnx"))
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    classifier = headstart.load_classifier(run)
    [[row]] = classifier.task_model.rows(Passage(TEXTS[0]))
    feed = {"input_ids": row.ids[None], "word_starts": row.word_starts[None]}
    feed |= {"attention_mask": np.ones_like(feed["input_ids"]), "token_type_ids": np.zeros_like(feed["input_ids"])}
    (found,) = session.run(
        ["probabilities"], {name.name: feed[name.name].astype(np.int64) for name in session.get_inputs()}
    )
    assert np.allclose(found, classifier.predict_proba(TEXTS[:1]), atol=1e-5)


@pytest.mark.parametrize(("kind", "to"), [("bert", "elmo"), ("elmo", "hf"), ("static", "hf"), ("bert", "glove")])
def test_a_format_for_another_kind_is_refused(
    kind: str, to: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"holds {kind}, which can be exported as .*onnx; got --to {to}"):
        result_of(headstart.export(pretrained_runs[kind], to, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No format called 'onx'\. Did you mean 'onnx'"):
        result_of(headstart.export("minilm", "onx", tmp_path / "out"))


@pytest.mark.parametrize("to", ["hf", "onnx"])
def test_what_is_there_is_not_written_over(to: str, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="is already there and not an empty folder"):
        result_of(headstart.export(pretrained_runs["bert"], to, tmp_path / "out"))
    with pytest.raises(CheckpointError, match="is already there and not an empty folder"):
        result_of(headstart.import_run(pretrained_runs["bert"], tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_full_disk_leaves_nothing_behind(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise CheckpointError("weights: cannot be written (No space left on device).")

    monkeypatch.setattr("headstart.training.run.write_tensors", full)
    monkeypatch.setattr(huggingface, "write_tensors", full)
    for work in (
        headstart.import_run(pretrained_runs["bert"], tmp_path / "run"),
        headstart.export(pretrained_runs["bert"], "hf", tmp_path / "hf"),
    ):
        with pytest.raises(HeadstartError, match="No space left"):
            result_of(work)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tokens", "says"), [("words", ["opens no ELMo"]), ("both", ["spells every word"]), ("characters", [])]
)
def test_an_elmo_with_a_table_of_words_tells_what_allennlp_does_with_it(
    tokens: str, says: list[str], tmp_path: Path
) -> None:
    encoder = Elmo(ElmoConfig(cell=6, projection=4, filters=[[1, 3]], char_width=3, tokens=tokens), len(SPECIALS))
    tokenizer = WordTokenizer(Vocabulary(SPECIALS, np.zeros(len(SPECIALS), dtype=np.int64)))
    save_run(Pretrained(encoder, tokenizer), tmp_path / "run", {}, "")
    events = list(headstart.export(tmp_path / "run", "elmo", tmp_path / "elmo"))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert len(notices) == len(says)
    assert all(part in notice for part, notice in zip(says, notices, strict=True))


def test_elmo_goes_out_with_the_vectors_of_some_words(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    folder = result_of(headstart.export(pretrained_runs["elmo"], "elmo", tmp_path / "out", words=["film", "superb"]))
    assert (folder / "vocab.txt").read_text(encoding="utf-8").split() == ["<S>", "</S>", "<UNK>", "film", "superb"]
    opened, own = headstart.load(folder), headstart.load(pretrained_runs["elmo"])
    assert np.allclose(opened.represent(TEXTS)[0], own.represent(TEXTS)[0], atol=1e-6)
    with pytest.raises(ConfigError, match="--words is for --to elmo; got --to hf"):
        result_of(headstart.export(pretrained_runs["bert"], "hf", tmp_path / "hf", words=["film"]))


TAGGED = [
    TaggedSentence(("The", "old", "actor", "likes", "unforgettable", "gardens", "."), None, "1"),
    TaggedSentence(("nobody", "forgets", "Zürich", "'s", "long", "play"), None, "2"),
    TaggedSentence(("child",), None, "3"),
]


@pytest.fixture(scope="module")
def tagger(
    pretrained_runs: dict[str, Path], tagged_files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    train, dev = tagged_files
    out = tmp_path_factory.mktemp("tagger") / "run"
    list(
        headstart.transfer(
            "tag",
            source=pretrained_runs["bert"],
            how="finetune",
            train=train,
            dev=dev,
            out=out,
            seeds=1,
            settings={"fitting": {"min_steps": 30, "epochs": 1.0, "encoder_rate": 3e-3}},
        )
    )
    return out


def test_a_plain_tagger_gives_transformers_the_same_logits_at_each_words_first_piece(
    tagger: Path, tmp_path: Path
) -> None:
    folder = result_of(headstart.export(tagger, "hf", tmp_path / "hf"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    words = [list(sentence.words) for sentence in TAGGED]
    batch = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    own = headstart.load_task_model(tagger)
    data, _ = own.prepare(TAGGED)
    with torch.no_grad():
        theirs = model(**batch).logits
        ours, mask = data.scores(range(len(TAGGED)))
    assert [model.config.id2label[i] for i in range(theirs.shape[2])] == own.task.to_table()["labels"]
    for row, sentence in enumerate(words):
        first = [batch.word_ids(row).index(word) for word in range(len(sentence))]
        assert int(mask[row].sum()) == len(sentence)
        torch.testing.assert_close(ours[row, : len(sentence)], theirs[row, first], rtol=0, atol=1e-5)


def test_their_tagger_tags_here(tagger: Path, tmp_path: Path) -> None:
    folder = result_of(headstart.export(tagger, "hf", tmp_path / "hf"))
    back, own = headstart.load_task_model(folder), headstart.load_task_model(tagger)
    assert back.task == own.task
    assert back.answers(TAGGED).answers == own.answers(TAGGED).answers


def test_a_tagger_is_not_for_onnx(tagger: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"Only models of text .* can be exported as ONNX; export a tagger with --to hf"
    ):
        result_of(headstart.export(tagger, "onnx", tmp_path / "onnx"))
    assert not (tmp_path / "onnx").exists()


@pytest.fixture(scope="module")
def fitted(
    pretrained_runs: dict[str, Path], tiny_examples: dict[str, list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """(task, kind of encoder, way) -> the run of a model whose head has its random start."""

    def save(task: str, kind: str, how: str) -> Path:
        out = tmp_path_factory.mktemp("fitted") / "run"
        start = open_start(pretrained_runs[kind])
        learned = task_class(task).learn(tiny_examples[task])
        config = settings_for(type(learned), start, how, {"longest": 30})
        [pretrained] = start.pretrained
        torch.manual_seed(2)
        model = build_model([pretrained.encoder], learned, config)
        save_task_model(TaskModel(learned, (pretrained.tokenizer,), model, config).frozen(), out, {})
        return out

    return save


def test_pairs_go_to_transformers_and_come_back(
    fitted: Callable[..., Path], tiny_examples: dict[str, list[Any]], tmp_path: Path
) -> None:
    run = fitted("pair", "bert", "finetune")
    folder = result_of(headstart.export(run, "hf", tmp_path / "hf"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, info = transformers.AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert type(model).__name__ == "BertForSequenceClassification"
    assert not info["missing_keys"]
    examples = tiny_examples["pair"]
    batch = tokenizer(
        [pair.first for pair in examples], [pair.second for pair in examples], padding=True, return_tensors="pt"
    )
    own = headstart.load_task_model(run)
    with torch.no_grad():
        theirs = model(**batch).logits
        ours, _ = own.prepare(examples)[0].scores(range(len(examples)))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert [model.config.id2label[i] for i in range(2)] == own.task.class_names
    back = headstart.load_task_model(folder)
    assert back.task == own.task
    for found, wanted in zip(back.answers(examples).answers, own.answers(examples).answers, strict=True):
        assert np.array_equal(found.probabilities, wanted.probabilities)


def test_questions_go_to_transformers_and_come_back(
    fitted: Callable[..., Path], tiny_examples: dict[str, list[Any]], tmp_path: Path
) -> None:
    run = fitted("qa", "bert", "finetune")
    folder = result_of(headstart.export(run, "hf", tmp_path / "hf"))
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["BertForQuestionAnswering"]
    assert not {"id2label", "label2id"} & config.keys()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, info = transformers.AutoModelForQuestionAnswering.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    own, examples = headstart.load_task_model(run), tiny_examples["qa"]
    for example in examples:
        [passage, *_] = own.task.passages(example, own)  # contexts may have several windows
        assert isinstance(passage.text, Joined)
        batch = tokenizer(passage.text.first, passage.text.second, return_tensors="pt")
        [[row]] = own.rows(passage)
        assert batch["input_ids"][0].tolist() == row.ids.tolist()
        with torch.no_grad():
            found = model(**batch)
            ours = own.model([collate([row])])[0]
        theirs = torch.stack([found.start_logits[0], found.end_logits[0]], dim=1)
        torch.testing.assert_close(ours, theirs[row.word_starts], rtol=0, atol=1e-5)
    back = headstart.load_task_model(folder)
    assert (back.task, back.longest, back.stride) == (own.task, own.longest, own.stride)
    assert back.answers(examples).answers == own.answers(examples).answers


@pytest.mark.parametrize("task", ["pair", "qa"])
def test_texts_read_apart_go_out_as_onnx_only(task: str, fitted: Callable[..., Path], tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = fitted(task, "bert", "frozen")
    with pytest.raises(
        ConfigError, match=r"not the plain one.*--to onnx, or fit one from a BERT with --how finetune\."
    ):
        result_of(headstart.export(run, "hf", tmp_path / "hf"))
    assert not (tmp_path / "hf").exists()
    folder = result_of(headstart.export(run, "onnx", tmp_path / "onnx"))
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    names = ("input_ids", "attention_mask", "token_type_ids", "word_starts")
    assert {given.name for given in session.get_inputs()} == {f"{name}_{n}" for name in names for n in (1, 2)}
    assert session.get_modelmeta().custom_metadata_map["task"] == task


@pytest.mark.parametrize("task", ["pair", "qa"])
def test_texts_read_together_run_in_onnxruntime(
    task: str, fitted: Callable[..., Path], tiny_examples: dict[str, list[Any]], tmp_path: Path
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = fitted(task, "bert", "finetune")
    folder = result_of(headstart.export(run, "onnx", tmp_path / "onnx"))
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    own = headstart.load_task_model(run)
    passages = [own.task.passages(example, own)[0] for example in tiny_examples[task]]
    batch = collate([own.rows(passage)[0][0] for passage in passages])
    assert batch.segments is not None
    feed = {"input_ids": batch.ids, "attention_mask": batch.mask.long(), "token_type_ids": batch.segments}
    assert {given.name for given in session.get_inputs()} == feed.keys()
    found = dict(
        zip(
            [output.name for output in session.get_outputs()],
            session.run(None, {name: values.numpy() for name, values in feed.items()}),
            strict=True,
        )
    )
    with torch.no_grad():
        wanted = own.model([batch])
    if task == "pair":
        assert np.allclose(found["logits"], wanted, atol=1e-5)
        assert np.allclose(found["probabilities"], wanted.softmax(dim=1), atol=1e-5)
        return
    scores = np.stack([found["start_logits"], found["end_logits"]], axis=2)
    for row, places in enumerate(batch.word_starts):
        real = places >= 0
        assert np.allclose(scores[row, places[real]], wanted[row, real], atol=1e-5)
