"""BERT's embeddings from word vectors: which rows, and what of their geometry is kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import headstart
from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.errors import CheckpointError
from headstart.pretraining.bert.pretraining import DEVIATION
from headstart.pretraining.elmo.spelling import teach_spelling
from headstart.pretraining.initial_vectors import initial_vectors, log_frequencies, rotation
from headstart.progress import Progress, result_of
from headstart.text.characters import character_table
from headstart.text.tokenizer import load_tokenizer
from headstart.text.wordpiece import WordPieceTokenizer
from headstart.transfer.forgetting import forgetting


@pytest.mark.parametrize("width", [8, 24])
def test_angles_between_words_are_those_of_their_vectors(width: int, pretrained_runs: dict[str, Path]) -> None:
    tokenizer = load_tokenizer(pretrained_runs["bert"])
    assert isinstance(tokenizer, WordPieceTokenizer)
    before = torch.randn(len(tokenizer), width)
    embeddings = before.clone()
    initial = result_of(initial_vectors(tokenizer.pieces, pretrained_runs["static"], width, seed=0))
    initial.write_to(embeddings, DEVIATION)
    count = len(initial.rows)
    changed = (embeddings != before).any(1)
    assert int(changed.sum()) == count > 20
    words = [tokenizer.pieces[row] for row in changed.nonzero().flatten().tolist()]
    assert not any(word.startswith("##") for word in words)
    static = headstart.load(pretrained_runs["static"])
    table = static.encoder.vectors.detach()  # type: ignore[union-attr]
    vectors = torch.stack([table[static.tokenizer.vocabulary.index[word]] for word in words])  # type: ignore[attr-defined]
    cosines = [F.normalize(rows) @ F.normalize(rows).T for rows in (vectors - vectors.mean(0), embeddings[changed])]
    torch.testing.assert_close(*cosines, rtol=0, atol=1e-4)
    assert float(embeddings[changed].std()) == pytest.approx(DEVIATION, rel=1e-3)


def test_a_rotation_keeps_lengths() -> None:
    wide = rotation(5, 9, seed=0)
    torch.testing.assert_close(wide @ wide.T, torch.eye(5))


def test_only_word_vectors_are_taken(pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    tokenizer = load_tokenizer(pretrained_runs["bert"])
    assert isinstance(tokenizer, WordPieceTokenizer)
    with pytest.raises(CheckpointError, match="holds elmo; --vectors takes word vectors"):
        result_of(initial_vectors(tokenizer.pieces, pretrained_runs["elmo"], 8, seed=0))


def test_a_bert_can_be_pretrained_from_them(corpus: Path, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    settings = {"encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32}
    settings["vectors"] = str(pretrained_runs["static"])
    list(headstart.pretrain("bert", corpus, out=tmp_path / "run", size="tiny", steps=2, settings=settings))
    assert f'vectors = "{pretrained_runs["static"]}"' in (tmp_path / "run" / "config.toml").read_text()


def test_fewer_columns_keep_what_differs_most(pretrained_runs: dict[str, Path]) -> None:
    words = headstart.load(pretrained_runs["static"]).tokenizer.vocabulary.words  # type: ignore[attr-defined]
    whole = result_of(initial_vectors(words, pretrained_runs["static"], 8, seed=0)).vectors
    cut = result_of(initial_vectors(words, pretrained_runs["static"], 3, seed=0)).vectors
    variances = torch.linalg.svdvals(whole) ** 2
    kept = torch.linalg.svdvals(cut) ** 2
    torch.testing.assert_close(kept / kept.sum(), variances[:3] / variances[:3].sum())


def test_a_character_network_learns_to_spell_vectors(pretrained_runs: dict[str, Path]) -> None:
    static = headstart.load(pretrained_runs["static"])
    elmo = Elmo(ElmoConfig(cell=8, projection=8, filters=[[1, 16], [2, 32], [3, 32]], highway=1))
    vocabulary = static.tokenizer.vocabulary  # type: ignore[attr-defined]
    initial = result_of(initial_vectors(vocabulary.words, pretrained_runs["static"], 8, seed=0))
    network = elmo.tokens
    assert isinstance(network, CharacterNetwork)
    for _ in teach_spelling(network, vocabulary, initial, seed=0, steps=300):
        pass
    words = [vocabulary.words[row] for row in initial.rows.tolist()]
    spelled = network.words(torch.from_numpy(character_table(words)))
    assert float(F.mse_loss(spelled, initial.vectors).detach()) < 0.3


def test_the_bias_of_an_untrained_softmax_is_how_often_words_occur() -> None:
    bias = log_frequencies(np.array([0, 1, 6]))
    torch.testing.assert_close(bias.exp(), torch.tensor([1 / 8, 1 / 8, 6 / 8]))


def test_an_elmo_can_be_pretrained_from_them(corpus: Path, pretrained_runs: dict[str, Path], tmp_path: Path) -> None:
    settings = {"encoder.cell": 16, "encoder.projection": 8, "training.batch": 200}
    found = {}
    for name, vectors in (("with", str(pretrained_runs["static"])), ("without", "off")):
        events = headstart.pretrain(
            "elmo",
            corpus,
            out=tmp_path / name,
            size="tiny",
            steps=1,
            settings={**settings, "encoder.tokens": "characters", "vectors": vectors},
        )
        found[name] = [event.stage for event in events if isinstance(event, Progress)]
    assert "learning spelling" in found["with"]
    assert "learning spelling" not in found["without"]


TINY_RUNS = {
    "elmo": {"encoder.cell": 16, "encoder.projection": 8, "training.batch": 200},
    "bert": {"encoder.width": 16, "encoder.inner": 32, "training.batch": 256, "objective.length": 32},
}


@pytest.mark.parametrize("kind", ["elmo", "bert"])
def test_forgetting_is_measured_without_the_vectors(
    kind: str, corpus: Path, pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    vectors = tmp_path / "words"
    shutil.copytree(pretrained_runs["static"], vectors)
    settings = {**TINY_RUNS[kind], "vectors": str(vectors)}
    list(headstart.pretrain(kind, corpus, out=tmp_path / "run", size="tiny", steps=1, settings=settings))
    shutil.rmtree(vectors)
    measured = result_of(forgetting(tmp_path / "run", headstart.load(tmp_path / "run").encoder))
    assert measured is not None
    assert measured.before == measured.after
