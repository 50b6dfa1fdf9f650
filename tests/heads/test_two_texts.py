from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from headstart.errors import DataError
from headstart.heads.recurrent import CELLS, RecurrentConfig
from headstart.heads.two_texts import WordReader, joined_again, soft_alignment, split

D = 5
FIRST, SECOND = [3, 1, 0, 4, 0], [2, 5, 3, 0, 0]
LENGTHS = torch.tensor(FIRST) + torch.tensor(SECOND)
MASK = torch.arange(8) < LENGTHS[:, None]
PARTS = ((torch.arange(8) >= torch.tensor(FIRST)[:, None]) & MASK).long()


def vectors(width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(*MASK.shape, width, generator=torch.Generator().manual_seed(seed))


def test_each_text_is_padded_alone() -> None:
    x = vectors()
    texts = split(x, MASK, PARTS)
    assert texts.first.shape == (5, 4, D)
    assert texts.second.shape == (5, 5, D)
    assert texts.first_mask.sum(dim=1).tolist() == FIRST
    assert texts.second_mask.sum(dim=1).tolist() == SECOND
    for b, (n, m) in enumerate(zip(FIRST, SECOND, strict=True)):
        assert torch.equal(texts.first[b, :n], x[b, :n])
        assert torch.equal(texts.second[b, :m], x[b, n : n + m])
        assert not texts.first[b, n:].any()
        assert not texts.second[b, m:].any()


def test_texts_that_are_split_and_joined_again_are_as_before() -> None:
    x = vectors().requires_grad_()
    texts = split(x, MASK, PARTS)
    again = joined_again(texts.first, texts.second, MASK, PARTS)
    assert torch.equal(again, x.masked_fill(~MASK[..., None], 0.0))
    again.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, MASK[..., None].float().expand_as(x))


def test_parts_at_padding_mean_nothing() -> None:
    x = vectors()
    other = split(x, MASK, PARTS.masked_fill(~MASK, 1))
    assert torch.equal(other.first, split(x, MASK, PARTS).first)
    assert torch.equal(other.second, split(x, MASK, PARTS).second)


def test_rows_out_of_order_are_refused() -> None:
    mask = torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(DataError, match="first text, then those of its second"):
        split(torch.zeros(1, 3, D), mask, torch.tensor([[0, 1, 0]]))
    with pytest.raises(DataError, match="then padding"):
        split(torch.zeros(1, 3, D), torch.tensor([[True, False, True]]), torch.tensor([[0, 0, 1]]))
    with pytest.raises(ValueError, match="needs parts"):
        split(torch.zeros(1, 3, D), mask, None)


def test_alignment_is_the_softmax_of_the_real_words() -> None:
    scores = torch.tensor([[1.0, 2.0, 50.0], [7.0, 8.0, 9.0]], requires_grad=True)
    weights = soft_alignment(scores, torch.tensor([[True, True, False], [False, False, False]]))
    share = math.exp(1) / (math.exp(1) + math.exp(2))
    torch.testing.assert_close(weights, torch.tensor([[share, 1 - share, 0.0], [0.0, 0.0, 0.0]]))
    (weights**2).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert not scores.grad[1].any()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", ["both", "forward"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_padded_row_is_read_as_a_packed_one(cell: str, directions: str, layers: int) -> None:
    """States and gradients are torch's own of packed sequences."""
    torch.manual_seed(0)
    reader = WordReader(D, 0, RecurrentConfig(cell=cell, width=4, layers=layers, directions=directions)).eval()  # type: ignore[arg-type]
    assert isinstance(reader.recurrent, nn.RNNBase)
    x, mask = vectors()[:4], MASK[:4]
    packed = pack_padded_sequence(x, LENGTHS[:4], batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(reader.recurrent(packed)[0], batch_first=True, total_length=8)
    states = reader(x, mask)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)
    for parameter, by_torch in zip(
        torch.autograd.grad((states**2).sum(), list(reader.parameters())),
        torch.autograd.grad((expected**2).sum(), list(reader.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(parameter, by_torch, rtol=1e-4, atol=1e-5)


def test_dropout_meets_what_each_layer_reads() -> None:
    reader = WordReader(D, 0, RecurrentConfig(width=4, layers=2, dropout=0.5))
    x, mask = torch.ones(2, 5, D), torch.ones(2, 5, dtype=torch.bool)
    torch.manual_seed(3)
    first = reader(x, mask)
    assert not torch.equal(reader(x, mask), first)
    torch.manual_seed(3)
    assert torch.equal(reader(x, mask), first)
    assert torch.equal(reader.eval()(x, mask), reader(x, mask))


def test_real_words_after_padding_are_refused() -> None:
    reader = WordReader(D, 0, RecurrentConfig(width=4))
    with pytest.raises(DataError, match="pad texts at their end only"):
        reader(torch.zeros(1, 3, D), torch.tensor([[True, False, True]]))
