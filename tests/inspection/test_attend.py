"""Where heads look: units, words and summaries, with hand-computed values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.batches.rows import collate, text_row
from headstart.errors import ConfigError, DataError
from headstart.inspection.attend import Attention, attend

TEXT = "Nobody likes filmed , nobody ."


def by_hand(probabilities: list[list[float]], word_of: tuple[int, ...]) -> Attention:
    """One head over [CLS], some pieces and [SEP]."""
    words = tuple("abc"[: max(word_of) + 1])
    units = tuple("[CLS]" if i == 0 else "[SEP]" if w < 0 else f"{words[w]}{i}" for i, w in enumerate(word_of))
    return Attention("toy", (1,), (1,), units, words, word_of, np.array([[probabilities]], np.float32))


def test_units_are_pieces_between_the_marks_and_each_has_its_word(pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    found = attend(pretrained, TEXT)
    assert found.encoder == pretrained.name
    assert (found.layers, found.heads) == ((1, 2), (1, 2))
    assert found.words == ("Nobody", "likes", "filmed", ",", "nobody", ".")
    assert (found.units[0], found.units[-1]) == ("[CLS]", "[SEP]")
    assert (found.word_of[0], found.word_of[-1]) == (-1, -1)
    encoding = pretrained.tokenizer.encode(TEXT)
    assert found.units[1:-1] == tuple(encoding.units)
    assert found.word_of[1:-1] == tuple(encoding.words.tolist())
    assert len(found.units) > len(found.words) + 2  # the tiny vocabulary has pieces of filmed
    assert found.probabilities.shape == (2, 2, len(found.units), len(found.units))
    np.testing.assert_allclose(found.probabilities.sum(-1), 1, atol=1e-5)


def test_a_text_and_its_words_are_attended_to_alike(pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    one, other = attend(pretrained, TEXT), attend(pretrained, TEXT.split())
    assert one.words == other.words
    np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_chosen_layers_and_heads_are_those_of_the_encoder(pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    row = text_row(pretrained.encoder, pretrained.tokenizer, TEXT)
    batch = collate([row])
    with torch.no_grad():
        _, every = pretrained.encoder.eval().attention(batch.ids, batch.mask)
    found = attend(pretrained, TEXT, layers=2, heads=[2, 1])
    assert (found.layers, found.heads) == ((2,), (2, 1))
    np.testing.assert_array_equal(found.of(2, 1), every[1, 0, 0].numpy())
    np.testing.assert_array_equal(found.probabilities[0, 0], every[1, 0, 1].numpy())
    with pytest.raises(ConfigError, match=r"no head 1 of layer 1 here; there are the heads 2, 1 of the layers 2"):
        found.of(1, 1)


def test_attention_between_words_sums_over_targets_and_averages_over_sources() -> None:
    found = by_hand(
        [
            [0.1, 0.2, 0.3, 0.2, 0.2],
            [0.0, 0.5, 0.1, 0.4, 0.0],
            [0.2, 0.1, 0.3, 0.2, 0.2],
            [0.0, 0.0, 0.0, 0.0, 1.0],
            [0.5, 0.1, 0.1, 0.1, 0.2],
        ],
        word_of=(-1, 0, 0, 1, -1),
    ).at_words()
    assert found.units == ("[CLS]", "a", "b", "[SEP]")
    assert found.word_of == (-1, 0, 1, -1)
    expected = [[0.1, 0.5, 0.2, 0.2], [0.1, 0.5, 0.3, 0.1], [0, 0, 0, 1], [0.5, 0.2, 0.1, 0.2]]
    np.testing.assert_allclose(found.of(1, 1), expected, atol=1e-6)
    np.testing.assert_array_equal(found.at_words().probabilities, found.probabilities)


def test_a_summary_by_hand() -> None:
    found = by_hand(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.1, 0.2, 0.3, 0.4, 0.0],
            [0.0, 0.5, 0.5, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 1.0],
            [1.0, 0.0, 0.0, 0.0, 0.0],
        ],
        word_of=(-1, 0, 1, 2, -1),
    )
    (head,) = found.summary()
    assert (head.layer, head.head) == (1, 1)
    assert head.shares == {
        "[CLS]": pytest.approx(0.1 / 3),
        "[SEP]": pytest.approx(1 / 3),
        "before": pytest.approx(0.5 / 3),
        "itself": pytest.approx(0.7 / 3),
        "after": pytest.approx(0.3 / 3),
        "others": pytest.approx(0.4 / 3),
    }
    nats = [-sum(p * np.log(p) for p in row) for row in ([0.1, 0.2, 0.3, 0.4], [0.5, 0.5])]
    assert head.entropy == pytest.approx(sum(nats) / 3)
    assert head.distance == pytest.approx((0.3 + 2 * 0.4 + 0.5) / (0.9 + 1.0))


def test_summaries_of_real_heads_share_out_everything(pretrained_runs: dict[str, Path]) -> None:
    found = attend(headstart.load(pretrained_runs["bert"]), TEXT, at_words=True)
    assert found.units[1:-1] == found.words
    heads = found.summary()
    assert [(head.layer, head.head) for head in heads] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    for head in heads:
        assert sum(head.shares.values()) == pytest.approx(1, abs=1e-6)


def test_what_cannot_be_attended_to(pretrained_runs: dict[str, Path]) -> None:
    bert = headstart.load(pretrained_runs["bert"])
    for kind in ("static", "elmo"):
        with pytest.raises(ConfigError, match="bert-mini and minilm have them"):
            attend(headstart.load(pretrained_runs[kind]), TEXT)
    with pytest.raises(DataError, match="no word to attend to"):
        attend(bert, "  ")
    with pytest.raises(DataError, match="Split it"):
        attend(bert, "film " * 600)
    with pytest.raises(ConfigError, match="no layer 3: this encoder has the layers 1 to 2"):
        attend(bert, TEXT, layers=3)
    with pytest.raises(ConfigError, match="no head 0: this encoder has the heads 1 to 2"):
        attend(bert, TEXT, heads=[1, 0])


def test_a_notebook_shows_a_cell_for_each_head() -> None:
    shown = by_hand([[1.0, 0.0, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]], word_of=(-1, 0, -1))._repr_html_()
    assert "<td>=90</td>" in shown
