from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from headstart.config import resolve
from headstart.errors import ConfigError
from headstart.heads.classify import ClassifyHead
from headstart.heads.pair import AlignedPairHead, PairHeadConfig, aligned, pair_head
from headstart.heads.recurrent import CELLS, Head
from headstart.heads.two_texts import split

D, WIDTH, C = 6, 4, 3
FIRST, SECOND = [3, 1, 4, 2], [2, 1, 3, 5]
LENGTHS = [n + m for n, m in zip(FIRST, SECOND, strict=True)]
MASK = torch.arange(9) < torch.tensor(LENGTHS)[:, None]
PARTS = ((torch.arange(9) >= torch.tensor(FIRST)[:, None]) & MASK).long()


def head(joined: int = 0, **settings: object) -> Head:
    torch.manual_seed(0)
    config = PairHeadConfig(**{"width": WIDTH, "compare": 8, **settings})  # type: ignore[arg-type]
    made = pair_head(D, joined, C, config).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def vectors(width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(*MASK.shape, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("joined", [0, 3])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_padding_and_neighbours_change_nothing(cell: str, joined: int) -> None:
    net, x = head(joined, cell=cell), vectors()
    beside = vectors(joined, seed=2) if joined else None
    logits = net(x, MASK, beside, None, PARTS)
    assert logits.shape == (4, C)
    garbage = x.where(MASK[..., None], 50 * vectors(seed=5))
    torch.testing.assert_close(net(garbage, MASK, beside, None, PARTS), logits, rtol=0, atol=1e-6)
    for b, n in enumerate(LENGTHS):
        row = slice(b, b + 1)
        own = None if beside is None else beside[row, :n]
        alone = net(x[row, :n], MASK[row, :n], own, None, PARTS[row, :n])
        torch.testing.assert_close(alone[0], logits[b], rtol=0, atol=1e-6)
    order = torch.tensor([2, 0, 3, 1])
    turned = net(x[order], MASK[order], None if beside is None else beside[order], None, PARTS[order])
    torch.testing.assert_close(turned, logits[order], rtol=0, atol=1e-6)


def test_alignment_by_a_plain_loop() -> None:
    words = split(vectors(), MASK, PARTS)
    product = vectors()[0, 0]
    to_b, to_a = aligned(words, product)
    for b, (n, m) in enumerate(zip(FIRST, SECOND, strict=True)):
        first, second = words.first[b, :n], words.second[b, :m]
        for i in range(n):
            weights = torch.tensor([float(product @ (first[i] * second[j])) for j in range(m)]).softmax(dim=0)
            torch.testing.assert_close(to_b[b, i], sum(weights[j] * second[j] for j in range(m)))
        for j in range(m):
            weights = torch.tensor([float(product @ (first[i] * second[j])) for i in range(n)]).softmax(dim=0)
            torch.testing.assert_close(to_a[b, j], sum(weights[i] * first[i] for i in range(n)))


def test_what_one_text_lacks_is_zeros() -> None:
    for cell in (*CELLS, "none"):
        net = head(cell=cell)
        mask, parts = MASK.clone(), PARTS.clone()
        mask[0] = False  # no words at all
        parts[1] = 0  # no second text
        parts[2] = 1  # no first text
        x = vectors().requires_grad_()
        logits = net(x, mask, None, None, parts)
        assert isinstance(net, AlignedPairHead)
        torch.testing.assert_close(logits[0], net.output(net.hidden.bias.tanh()))
        logits.sum().backward()
        for tensor in (x, *net.parameters()):
            assert tensor.grad is not None
            assert tensor.grad.isfinite().all()
        assert x.grad is not None
        assert not x.grad[0].any()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_every_parameter_gets_a_gradient(cell: str, layers: int) -> None:
    net = head(cell=cell, layers=layers)
    (net(vectors(), MASK, None, None, PARTS) ** 2).sum().backward()
    assert net.unused_parameters() == []
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_it_overfits_eight_pairs(cell: str) -> None:
    torch.manual_seed(0)
    net = pair_head(D, 0, C, PairHeadConfig(cell=cell, width=16, compare=32, dropout=0.0))  # type: ignore[arg-type]
    x, mask, parts = torch.randn(8, 9, D), MASK.repeat(2, 1), PARTS.repeat(2, 1)
    gold = torch.arange(8) % C
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        loss = nn.functional.cross_entropy(net(x, mask, None, None, parts), gold)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert net(x, mask, None, None, parts).argmax(dim=1).equal(gold)


def test_together_is_a_linear_layer_on_the_first_vector() -> None:
    net, x = head(reads="together", cell="none"), vectors()
    assert isinstance(net, ClassifyHead)
    torch.testing.assert_close(net(x, MASK, None, None, PARTS), net.output(x[:, 0]))
    assert net.is_plain
    assert net.uses_encoder_pooling


def test_only_texts_read_together_have_a_first_position() -> None:
    together, apart = (PairHeadConfig(reads=reads, cell="none") for reads in ("together", "apart"))  # type: ignore[arg-type]
    assert together.reads_together
    assert together.reads_first_position
    assert together.uses_encoder_pooling
    assert not PairHeadConfig(reads="together", pool="max").reads_first_position
    assert not apart.reads_together
    assert not apart.reads_first_position
    assert not apart.uses_encoder_pooling


def test_a_pool_that_cannot_be_is_refused_where_it_is_used() -> None:
    with pytest.raises(ConfigError, match=r"network\.pool"):
        resolve(PairHeadConfig, {"pool": "mex"})
    with pytest.raises(ConfigError, match="would see one word only"):
        resolve(PairHeadConfig, {"reads": "together", "directions": "forward"})
    resolve(PairHeadConfig, {"reads": "apart", "directions": "forward"})
