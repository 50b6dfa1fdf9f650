"""Similarity by hand on vectors in a plane, and against vectors that are taken one text at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import headstart
from headstart.batches.rows import text_row
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import ConfigError, DataError
from headstart.inspection.rank_correlation import spearman_intervals
from headstart.inspection.scored_pairs import ScoredPair
from headstart.inspection.similarity import Similarity, similarity
from headstart.pretrained import Pretrained
from headstart.progress import result_of
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import SPECIALS, Vocabulary

DEGREES = {"east": 0, "near": 10, "mid": 45, "north": 90, "west": 180}


@pytest.fixture
def plane() -> Pretrained:
    """A word for each direction, all of length one."""
    words = (*SPECIALS, *DEGREES)
    encoder = Static(StaticConfig(dim=2), len(words))
    angles = torch.tensor([0.0, 0.0, 200.0, *DEGREES.values()]).deg2rad()
    with torch.no_grad():
        encoder.vectors.copy_(torch.stack([angles.cos(), angles.sin()], dim=1))
    counts = np.arange(len(words), 0, -1)
    return Pretrained(encoder, WordTokenizer(Vocabulary(words, counts, lowercase=True)), name="plane")


def found(pretrained: Pretrained, pairs: list[tuple[str, str, float]], **options: object) -> Similarity:
    return result_of(similarity(pretrained, [ScoredPair(*pair) for pair in pairs], **options))  # type: ignore[arg-type]


def test_word_pairs_by_hand(plane: Pretrained) -> None:
    """Angles 10, 45, 90 and 180: the second and third are scored the other way round, and 1 - 6 * 2 / 60 = 0.8."""
    pairs = [("East", "near", 9.0), ("east", "mid", 3.0), ("east", "north", 5.0), ("west", "east", 1.0)]
    done = found(plane, [*pairs, ("east", "nowhere", 10.0)])
    (layer,) = done.layers
    assert layer.rho == pytest.approx(0.8)
    assert layer.interval[0] <= layer.rho <= layer.interval[1]
    assert done.cosines[0] == pytest.approx(np.cos(np.deg2rad([10, 45, 90, 180])), abs=1e-6)
    assert (done.unit, done.pairs, done.covered, done.left_out) == ("words", 5, 4, 1)


def test_a_sentence_is_the_mean_of_the_words_it_is_known_by(plane: Pretrained) -> None:
    """East and north together point to the middle, whatever stands between them."""
    pairs = [("east oh north", "mid", 3.0), ("east east", "mid", 2.0), ("north", "oh west west", 1.0)]
    done = found(plane, pairs)
    assert done.cosines[0] == pytest.approx([1.0, np.cos(np.pi / 4), 0.0], abs=1e-6)
    assert (done.unit, done.layers[0].rho, done.covered) == ("sentences", pytest.approx(1.0), 3)


def test_ties_share_their_rank(plane: Pretrained) -> None:
    pairs = [("east", "near", 2.0), ("near", "east", 2.0), ("east", "mid", 2.0), ("east", "north", 1.0)]
    assert found(plane, pairs).layers[0].rho == pytest.approx(3 / np.sqrt(4.5 * 3))  # ranks 3.5 3.5 2 1, and 3 3 3 1


WORDS = ["likes", "film", "long play", "superb", "the", "the music the city", "friend hates"]


@pytest.mark.parametrize("kind", ["static", "elmo", "bert"])
def test_each_layer_has_the_rho_of_texts_encoded_alone(kind: str, pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs[kind])
    pairs = [(a, b, float(len(a) - len(b))) for a in WORDS for b in WORDS if a != b]
    done = found(pretrained, pairs, seed=4)
    means = {text: mean_of_units(pretrained, text) for text in WORDS}
    gold = [score for *_, score in pairs]
    assert [layer.layer for layer in done.layers] == list(range(pretrained.encoder.shape[0]))
    for number, layer in enumerate(done.layers):
        cosines = [cosine(means[a][number], means[b][number]) for a, b, _ in pairs]
        assert done.cosines[number] == pytest.approx(cosines, abs=1e-5)
        assert layer.rho == pytest.approx(spearmanr(done.cosines[number], gold).statistic, abs=1e-9)
    assert [layer.interval for layer in done.layers] == spearman_intervals(done.cosines, np.array(gold), 4)
    assert done.best.rho == max(layer.rho for layer in done.layers)
    assert [one.layer for one in found(pretrained, pairs, layers="top").layers] == [len(done.layers) - 1]


def mean_of_units(pretrained: Pretrained, text: str) -> np.ndarray:
    """Over words, or pieces: (K, D)."""
    encoder = pretrained.encoder
    ids = torch.tensor(text_row(encoder, pretrained.tokenizer, text).ids)[None]
    edge = encoder.marks // 2
    with torch.no_grad():
        layers = torch.stack(encoder.hidden_states(ids, torch.ones(ids.shape[:2], dtype=torch.bool)))
    return layers[:, 0, edge : layers.shape[2] - edge].mean(1).numpy()


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_what_is_spelled_or_has_pieces_is_known(pretrained_runs: dict[str, Path], plane: Pretrained) -> None:
    pairs = [("filmy", "playy", 1.0), ("film", "filmy", 2.0), ("play", "film", 3.0), ("the", "play", 2.5)]
    covered = {
        kind: found(headstart.load(run), pairs).covered for kind, run in pretrained_runs.items() if kind != "static"
    }
    assert covered == {"elmo": 4, "bert": 4}
    with pytest.raises(DataError, match="plane: knows both texts of 0 of 4 pairs"):
        found(plane, pairs)


def test_long_texts_are_cut_and_counted(toy: Callable[..., Pretrained]) -> None:
    pretrained = toy(["a", "b", "c"], (1, 2), lambda words: torch.tensor([[[ord(w), 1.0] for w in words]]), longest=3)
    done = found(pretrained, [("a a b c", "c", 1.0), ("b", "c", 2.0), ("a", "c", 0.0)])
    assert done.cut == 1


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([("east", "near", 1.0), ("east", "mid", 1.0), ("west", "mid", 1.0)], "All 3 pairs have the same score"),
        ([("east", "east", 1.0)] * 2 + [("east", "east", 2.0)], "the same cosine in layer 0"),
    ],
)
def test_what_ranks_nothing_is_refused(plane: Pretrained, pairs: list[tuple[str, str, float]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        found(plane, pairs)
    with pytest.raises(ConfigError, match="no layer 3"):
        found(plane, pairs, layers=3)


def test_shown_as_json_and_in_a_notebook(plane: Pretrained) -> None:
    done = found(plane, [("east", "near", 3.0), ("east", "mid", 2.0), ("east", "west", 1.0)])
    assert done.as_table() == {
        "encoder": "plane", "unit": "words", "pairs": 3, "covered": 3, "left_out": 0, "cut": 0,
        "layers": [{"layer": 0, "rho": pytest.approx(1.0), "interval": pytest.approx([1.0, 1.0])}],
    }  # fmt: skip
    assert "<td>0</td><td>1.000</td><td>1.000 to 1.000</td>" in done._repr_html_()
