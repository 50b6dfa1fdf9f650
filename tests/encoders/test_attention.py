"""The attention of a BERT by hand; an encoder without it says so. Parity is in tests/weights/test_huggingface.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from headstart.encoders.base import Encoder
from headstart.encoders.bert import Bert, Block
from headstart.encoders.kernels.layout import Layout
from headstart.encoders.registry import ENCODERS
from headstart.errors import ConfigError

V, T = 300, 9
MASK = torch.arange(T) < torch.tensor([[9], [6], [2]])
SEGMENTS = (torch.arange(T) > 3).long().expand(3, T)
LARGE = 30.0  # of the initial weights, so that heads differ and no attention is uniform


@pytest.fixture
def bert(tiny_encoder: Callable[..., Encoder]) -> Bert:
    encoder = tiny_encoder("bert", V)
    assert isinstance(encoder, Bert)
    with torch.no_grad():
        for block in encoder.blocks:
            block.query_key_value.weight.mul_(LARGE)
    return encoder.eval()


@pytest.fixture
def ids(tiny_ids: Callable[..., torch.Tensor]) -> torch.Tensor:
    return tiny_ids("bert", 3, T)


@torch.no_grad()
def test_rows_sum_to_one_over_real_pieces_and_are_zero_at_padding(bert: Bert, ids: torch.Tensor) -> None:
    _, probabilities = bert.attention(ids, MASK)
    sums = probabilities.sum(dim=-1).permute(1, 3, 0, 2)  # (B, T, layers, heads)
    torch.testing.assert_close(sums[MASK], torch.ones_like(sums[MASK]))
    assert not sums[~MASK].any()
    assert not probabilities.permute(1, 4, 0, 2, 3)[~MASK].any()


@torch.no_grad()
def test_the_states_are_those_of_inference_and_follow_from_the_probabilities(bert: Bert, ids: torch.Tensor) -> None:
    states, probabilities = bert.attention(ids, MASK, SEGMENTS)
    for state, expected in zip(states, bert.infer(ids, MASK, SEGMENTS).padded(MASK), strict=True):
        torch.testing.assert_close(state, expected, atol=1e-5, rtol=1e-5)
    layout = Layout.of(MASK)
    for block, below, above, weights in zip(bert.blocks, states[:-1], states[1:], probabilities, strict=True):
        assert isinstance(block, Block)
        _, _, values = block.split(layout.unpad(below), layout)
        attended = layout.unpad((weights @ values).transpose(1, 2).flatten(2))
        x = block.attention_norm(layout.unpad(below) + block.attention_out(attended))
        x = block.norm(x + block.outer(torch.nn.functional.gelu(block.inner(x))))
        torch.testing.assert_close(layout.pad(x), above, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_equal_keys_are_attended_to_alike(bert: Bert, ids: torch.Tensor) -> None:
    for block in bert.blocks:
        width = bert.config.width
        block.query_key_value.weight[width : 2 * width] = 0  # every key is its bias
    _, probabilities = bert.attention(ids, MASK)
    for row, length in enumerate(MASK.sum(1).tolist()):
        real = probabilities[:, row, :, :length, :length]
        torch.testing.assert_close(real, torch.full_like(real, 1 / length))


@pytest.mark.parametrize("kind", [kind for kind in ENCODERS if kind != "bert"])
def test_who_has_no_heads_names_one_that_has(
    kind: str, tiny_encoder: Callable[..., Encoder], tiny_ids: Callable[..., torch.Tensor]
) -> None:
    encoder = tiny_encoder(kind)
    with pytest.raises(ConfigError, match=f"this is {encoder.title}.*bert-mini and minilm"):
        encoder.attention(tiny_ids(kind, 1, 3), torch.ones(1, 3, dtype=torch.bool))


def test_int8_is_refused(bert: Bert, ids: torch.Tensor) -> None:
    with torch.no_grad(), pytest.raises(ConfigError, match="Open it in float32"):
        bert.quantised().attention(ids, MASK)
