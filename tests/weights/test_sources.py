"""Whatever holds pretrained weights opens alike, and what cannot be opened says why."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.errors import CheckpointError, ConfigError, DataError, HeadstartError
from headstart.pretrained import Pretrained, weights_of
from headstart.progress import result_of
from headstart.weights.sources import labelled_file, open_source

SENTENCES = ["The cat likes the film .", "Nobody", "her sister watches old songs , boring ."]
FILES = {"static": ("glove", "glove.txt"), "elmo": ("elmo", ""), "bert": ("hf", "")}


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_a_run_and_the_files_it_is_exported_to_give_the_same_vectors(
    kind: str, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    form, file = FILES[kind]
    folder = result_of(headstart.export(pretrained_runs[kind], form, tmp_path / "out"))
    opened = headstart.load(folder / file)
    assert opened.kind == kind
    assert same(opened.represent(SENTENCES), headstart.load(pretrained_runs[kind]).represent(SENTENCES))


def test_elmo_opens_as_a_folder_as_a_pair_and_as_the_pair_of_the_command_line(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    folder = result_of(headstart.export(pretrained_runs["elmo"], "elmo", tmp_path / "out"))
    pair = (folder / "options.json", folder / "weights.hdf5")
    expected = headstart.load(folder).represent(SENTENCES)
    assert same(headstart.load(pair).represent(SENTENCES), expected)
    assert same(headstart.load(f"{pair[0]},{pair[1]}").represent(SENTENCES), expected)


def test_words_that_are_split_already_get_one_vector_each(kind: str, pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs[kind])
    words = [pretrained.words(sentence) for sentence in SENTENCES]
    assert same(pretrained.represent(words), pretrained.represent(SENTENCES))
    odd = ["don't", "\x01", "well-known", ""]
    assert pretrained.represent([odd])[0].shape[1] == len(odd)


def test_layers_are_chosen_by_name_or_number(pretrained_runs: dict[str, Path]) -> None:
    elmo = headstart.load(pretrained_runs["elmo"])
    (every,) = elmo.represent(SENTENCES[:1])
    assert every.shape[0] == 3
    for layers, expected in (("top", every[2:]), (0, every[:1]), (-1, every[2:]), ([2, 0], every[[2, 0]])):
        assert np.array_equal(elmo.represent(SENTENCES[:1], layers)[0], expected)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"no layer 3: this encoder has the layers 0 to 2"):
        elmo.represent(SENTENCES, 3)
    with pytest.raises(ConfigError, match=r"No choice of layers called 'al'\. Did you mean 'all'"):
        elmo.represent(SENTENCES, "al")  # type: ignore[arg-type]


def test_only_elmo_has_a_state_to_carry(pretrained_runs: dict[str, Path]) -> None:
    elmo = headstart.load(pretrained_runs["elmo"])
    first = elmo.represent(SENTENCES[:1], carry_state=True)
    assert np.allclose(first[0], elmo.represent(SENTENCES[:1])[0], atol=1e-6)
    assert not np.allclose(elmo.represent(SENTENCES[:1], carry_state=True)[0], first[0], atol=1e-6)
    with pytest.raises(ConfigError, match="carry_state is for ELMo"):
        headstart.load(pretrained_runs["bert"]).represent(SENTENCES, carry_state=True)


def test_what_is_on_the_disk_wins_over_a_name_of_the_catalogue(
    pretrained_runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result_of(headstart.import_run(pretrained_runs["bert"], tmp_path / "minilm"))
    monkeypatch.chdir(tmp_path)
    assert len(headstart.load("minilm").tokenizer) == len(headstart.load(pretrained_runs["bert"]).tokenizer)


def test_what_the_files_lack_is_said_once(
    pretrained_runs: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "vectors.txt"
    folder.write_text("film 1 2\nfilm 3 4\nplay 5 6\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "headstart"):
        opened = headstart.load(folder)
    assert [record.getMessage() for record in caplog.records] == list(opened.notices)
    assert len(opened.notices) == 1


BAD = {
    "bert-tiny": (CheckpointError, "Did you mean 'google-bert-tiny'"),
    "minilmm": (CheckpointError, "no such file or folder, nor such a name.*Did you mean 'minilm'"),
    "some/folder": (CheckpointError, "nor such a name in the catalogue. `headstart get --list`"),
    "rotten-tomatoes": (ConfigError, "is labelled text"),
    "{tmp}/weights.hdf5": (CheckpointError, "an ELMo is two files"),
    "{tmp}/model.safetensors": (CheckpointError, "give the folder it is in"),
    "{tmp}/options.json,{tmp}/none.hdf5": (CheckpointError, "none.hdf5: there is no such file"),
    "{tmp}/empty": (CheckpointError, "nothing in this folder can be opened"),
    "{tmp}/letter.txt": (DataError, "letter.txt"),
}


@pytest.mark.parametrize("source", BAD)
def test_what_cannot_be_opened_says_why(source: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("weights.hdf5", "model.safetensors", "options.json"):
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "letter.txt").write_text("Dear Sir,\n\nI liked the film.\n", encoding="utf-8")
    error, message = BAD[source]
    with pytest.raises(error, match=message):
        headstart.load(source.replace("{tmp}", str(tmp_path)))


def test_only_word_vectors_are_cut_down_to_some_words(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only word vectors can be cut down"):
        headstart.load(pretrained_runs["bert"], words=["film"])
    folder = result_of(headstart.export(pretrained_runs["static"], "word2vec", tmp_path / "out"))
    few = headstart.load(folder / "word2vec.txt", words=["film", "play"])
    every = headstart.load(pretrained_runs["static"])
    assert len(few.tokenizer) < len(every.tokenizer)
    assert same(few.represent(["film play"]), every.represent(["film play"]))


def test_labelled_examples_are_a_file_unless_the_catalogue_has_their_name(tmp_path: Path) -> None:
    assert result_of(labelled_file(tmp_path / "train.csv")) == tmp_path / "train.csv"
    with pytest.raises(HeadstartError, match="minilm"):
        result_of(open_source("hf:minilm"))


def test_heads_come_along(pretrained_runs: dict[str, Path]) -> None:
    assert set(headstart.load(pretrained_runs["bert"]).heads) == {"masked", "next"}
    assert set(headstart.load(pretrained_runs["elmo"]).heads) == {"head"}
    assert headstart.load(pretrained_runs["static"]).heads == {}


def weights_are_equal(left: Pretrained, right: Pretrained) -> bool:
    mine, other = weights_of(left), weights_of(right)
    return mine.keys() == other.keys() and all(torch.equal(mine[name], other[name]) for name in mine)


def test_an_imported_run_is_the_same_to_the_bit(kind: str, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    result_of(headstart.import_run(pretrained_runs[kind], tmp_path / "run"))
    assert weights_are_equal(headstart.load(tmp_path / "run"), headstart.load(pretrained_runs[kind]))
    card = (tmp_path / "run" / "CARD.md").read_text(encoding="utf-8")
    assert f"**Imported** from {kind}" in card


def test_a_bert_opens_in_int8_and_gives_nearly_the_same_vectors(pretrained_runs: dict[str, Path]) -> None:
    exact = headstart.load(pretrained_runs["bert"])
    rounded = headstart.load(pretrained_runs["bert"], precision="int8")
    for left, right in zip(exact.represent(SENTENCES), rounded.represent(SENTENCES), strict=True):
        assert not np.array_equal(left, right)
        similarity = (left * right).sum(-1) / np.linalg.norm(left, axis=-1) / np.linalg.norm(right, axis=-1)
        assert similarity.min() > 0.99
    assert same(exact.quantised().represent(SENTENCES), rounded.represent(SENTENCES))


def test_a_precision_that_there_is_not_is_refused(pretrained_runs: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match=r"No precision called 'int88'\. Did you mean 'int8'"):
        headstart.load(pretrained_runs["bert"], precision="int88")
    with pytest.raises(ConfigError, match="int8 is for BERT"):
        headstart.load(pretrained_runs["elmo"], precision="int8")
