"""Our ELMo files in AllenNLP's own code. It is in the environment of `make bench`, not in that of the tests."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.pretrained import Pretrained
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary
from headstart.weights.elmo_hdf5 import write_elmo

h5py = pytest.importorskip("h5py")
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("allennlp") is None, reason="AllenNLP is not installed here"),
    pytest.mark.filterwarnings("ignore"),
]

WORDS = (*SPECIALS, "the", "The", "cat", ".")
SENTENCES = [["The", "cat", "naïve", "."], ["the"], ["Worte", "the", "the"]]
SHAPE: dict[str, Any] = {"cell": 6, "projection": 4, "filters": [[1, 3], [2, 4]], "char_width": 3, "highway": 2}
TOLERANCE = 2e-6


def written(tokens: str, folder: Path) -> Pretrained:
    torch.manual_seed(0)
    encoder = Elmo(ElmoConfig(**SHAPE, tokens=tokens), len(WORDS))
    tokenizer = WordTokenizer(Vocabulary(WORDS, np.zeros(len(WORDS), dtype=np.int64)))
    pretrained = Pretrained(encoder, tokenizer)
    write_elmo(pretrained, folder)
    return pretrained


def their_elmo() -> Any:
    with warnings.catch_warnings():  # of its imports
        warnings.simplefilter("ignore")
        from allennlp.modules import elmo
    return elmo


def bilm(folder: Path) -> Any:
    model = their_elmo()._ElmoBiLm(str(folder / "options.json"), str(folder / "weights.hdf5")).eval()
    model._elmo_lstm.stateful = False
    return model


def lstm_alone(folder: Path) -> Any:
    lstm = their_elmo().ElmoLstm(4, 4, 6, 2, memory_cell_clip_value=3.0, state_projection_clip_value=3.0)
    lstm.load_weights(str(folder / "weights.hdf5"))
    lstm.stateful = False
    return lstm.eval()


@torch.no_grad()
def from_table(folder: Path) -> list[np.ndarray[Any, Any]]:
    """What docs/weights.md shows: AllenNLP's LSTM over the table's vectors, and over those it spells, if it can."""
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    row_of = {word: number for number, word in enumerate(words)}
    with h5py.File(folder / "token_embeddings.hdf5") as file:
        table = torch.from_numpy(file["embedding"][...])
    spell = bilm(folder)._token_embedder if "char_cnn" in (folder / "options.json").read_text() else None

    def vector(word: str) -> torch.Tensor:
        if word in row_of or spell is None:
            return table[row_of.get(word, row_of["<UNK>"])]
        return spell(their_elmo().batch_to_ids([[word]]))["token_embedding"][0, 1]

    found = []
    for sentence in SENTENCES:
        x = torch.stack([vector(word) for word in ("<S>", *sentence, "</S>")])[None]
        upper = lstm_alone(folder)(x, torch.ones(x.shape[:2], dtype=torch.bool))
        found.append(torch.stack([torch.cat([x, x], dim=-1), *upper])[:, 0, 1:-1].numpy())
    return found


def test_an_elmo_of_characters_opens_with_the_same_layers(tmp_path: Path) -> None:
    ours = written("characters", tmp_path / "elmo").represent(SENTENCES)
    with torch.no_grad():
        layers = torch.stack(bilm(tmp_path / "elmo")(their_elmo().batch_to_ids(SENTENCES))["activations"])
    for row, vectors in enumerate(ours):
        np.testing.assert_allclose(layers[:, row, 1 : 1 + vectors.shape[1]], vectors, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("tokens", ["words", "both"])
def test_a_table_of_words_gives_the_same_layers_in_their_lstm(tokens: str, tmp_path: Path) -> None:
    ours = written(tokens, tmp_path / "elmo").represent(SENTENCES)
    for mine, theirs in zip(ours, from_table(tmp_path / "elmo"), strict=True):
        np.testing.assert_allclose(theirs, mine, atol=TOLERANCE, rtol=0)


def test_they_have_no_place_for_a_table_of_words(tmp_path: Path) -> None:
    """If these change, docs/weights.md and the notice of `export` must change with them."""
    written("words", tmp_path / "words")
    with pytest.raises(KeyError, match="char_embed"):
        bilm(tmp_path / "words")
    ours = written("both", tmp_path / "both").represent([["the", "cat"]])[0]
    with torch.no_grad():
        token_layer = bilm(tmp_path / "both")(their_elmo().batch_to_ids([["the", "cat"]]))["activations"][0]
    assert np.abs(token_layer[0, 1:3].numpy() - ours[0]).max() > 0.1
