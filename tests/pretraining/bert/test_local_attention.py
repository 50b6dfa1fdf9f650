from __future__ import annotations

import pytest
import torch

from headstart.encoders.bert import Bert, BertConfig, Block
from headstart.encoders.kernels.layout import Layout
from headstart.pretraining.bert.local_attention import FREQUENCIES, OFFSETS, sinusoids, spaced, start_local

V, T = 300, 40


def started(**shape: int) -> Bert:
    torch.manual_seed(0)
    config = BertConfig(**{"layers": 3, "width": 96, "heads": 3, "inner": 96, "positions": 64, **shape})
    encoder = Bert(config, V).eval()
    with torch.no_grad():
        encoder.words.weight.normal_(0, 0.1)
    start_local(encoder, seed=1)
    return encoder


def attention(encoder: Bert, ids: torch.Tensor, number: int) -> torch.Tensor:
    """(heads, T, T): what each head of a block reads in one sequence, all blocks below it run."""
    layout = Layout.of(torch.ones(1, len(ids), dtype=torch.bool))
    with torch.no_grad():
        x = encoder.embed(ids[None], None, layout)
        for block in encoder.blocks[:number]:
            x = block(x, layout)
        block = encoder.blocks[number]
        assert isinstance(block, Block)
        q, k, _ = block.query_key_value(x).view(len(ids), 3, block.heads, -1).permute(1, 2, 0, 3)
    return (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1)


@pytest.mark.parametrize("shape", [{}, {"width": 64, "heads": 4}])
def test_local_heads_read_the_position_at_their_offset_whatever_the_words(shape: dict[str, int]) -> None:
    encoder = started(**shape)
    ids = torch.randint(V, (T,), generator=torch.Generator().manual_seed(2))
    weights = attention(encoder, ids, 0)
    for head, offset in enumerate(OFFSETS):
        inner = torch.arange(3, T - 3)
        assert weights[head, inner].argmax(1).eq(inner + offset).float().mean() > 0.9
        assert weights[head, inner, inner + offset].mean() > 0.3


def test_positions_survive_into_the_blocks_above() -> None:
    encoder = started()
    ids = torch.randint(V, (T,), generator=torch.Generator().manual_seed(2))
    inner = torch.arange(3, T - 3)
    for number in (1, 2):
        weights = attention(encoder, ids, number)
        for head, offset in enumerate(OFFSETS):
            assert weights[head, inner, inner + offset].mean() > 3 / T


def test_words_keep_clear_of_the_positions() -> None:
    encoder = started()
    words, positions = encoder.words.weight, encoder.positions.weight
    torch.testing.assert_close(words @ positions.T, torch.zeros(V, 64), atol=1e-4, rtol=0)


def test_the_distance_of_two_positions_alone_decides_their_product() -> None:
    found = sinusoids(129, spaced(FREQUENCIES))
    products = found @ found.T
    torch.testing.assert_close(products.diagonal(), torch.ones(129))
    torch.testing.assert_close(products.diagonal(3), products[0, 3].expand(126), atol=1e-4, rtol=0)
    assert products[0, 1:].max() < 0.33  # nothing else looks like the position itself


def test_the_seed_decides() -> None:
    torch.testing.assert_close(started().positions.weight, started().positions.weight, rtol=0, atol=0)


def test_a_head_too_narrow_for_a_frequency_starts_random() -> None:
    config = BertConfig(layers=1, width=3, heads=3, inner=4, positions=8)
    encoder = Bert(config, V)
    before = encoder.positions.weight.clone()
    start_local(encoder, seed=0)
    assert torch.equal(before, encoder.positions.weight)
