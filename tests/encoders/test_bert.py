import pytest
import torch

from headstart.config import resolve
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.errors import ConfigError, DataError


def bert(**changes: object) -> Bert:
    torch.manual_seed(0)
    return Bert(BertConfig(**{**BERT_SIZES["tiny"], "positions": 16, **changes}), vocabulary_size=40)


def test_forward_stacks_the_embeddings_and_every_block() -> None:
    encoder, ids, mask = bert().eval(), torch.arange(12).view(2, 6), torch.ones(2, 6, dtype=torch.bool)
    R = encoder(ids, mask)
    assert R.layers.shape == (3, 2, 6, 128)
    for stacked, state in zip(R.layers, encoder.hidden_states(ids, mask), strict=True):
        assert torch.equal(stacked, state)


def test_no_segments_means_the_first_segment() -> None:
    encoder, ids, mask = bert().eval(), torch.arange(12).view(2, 6), torch.ones(2, 6, dtype=torch.bool)
    torch.testing.assert_close(encoder(ids, mask).layers, encoder(ids, mask, torch.zeros_like(ids)).layers)
    assert not torch.allclose(encoder(ids, mask).layers, encoder(ids, mask, torch.ones_like(ids)).layers)


def test_attention_with_dropout_agrees_with_the_fused_kernel() -> None:
    """A rate so small that nothing is dropped takes the training path and must give the evaluation path's values."""
    encoder = bert(dropout=0.0, attention_dropout=2e-5)
    ids = torch.arange(12).view(2, 6)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    trained, evaluated = encoder.train()(ids, mask), encoder.eval()(ids, mask)
    torch.testing.assert_close(trained.layers[:, mask], evaluated.layers[:, mask], atol=1e-5, rtol=1e-4)


def test_every_piece_sees_every_other() -> None:
    encoder, ids, mask = bert().eval(), torch.arange(6)[None], torch.ones(1, 6, dtype=torch.bool)
    other = ids.clone()
    other[0, 3] = 30
    moved = (encoder(ids, mask).layers[1:] - encoder(other, mask).layers[1:]).abs().amax(dim=-1)
    assert (moved > 0).all()


def test_initial_weights_are_cut_at_two_deviations() -> None:
    weight = bert().words.weight
    assert weight.abs().max() <= 0.04
    assert weight.std().item() == pytest.approx(0.0176, abs=0.001)  # the deviation of a normal cut at two


def test_a_sequence_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(DataError, match=r"17 pieces does not fit this BERT, which has 16 positions"):
        bert()(torch.zeros(1, 17, dtype=torch.int64), torch.ones(1, 17, dtype=torch.bool))


def test_heads_must_share_the_width() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.width must divide evenly by encoder\.heads; got 100 / 3"):
        resolve(BertConfig, {"layers": 1, "width": 100, "heads": 3, "inner": 8})
    for size in BERT_SIZES.values():
        resolve(BertConfig, size)
