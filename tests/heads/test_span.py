from __future__ import annotations

import pytest
import torch
from torch import Tensor

from headstart.heads.recurrent import CELLS, Head
from headstart.heads.span import (
    AttentiveSpanHead,
    PlainSpanHead,
    SpanHeadConfig,
    TrilinearSimilarity,
    attention_both_ways,
    span_head,
    span_loss,
)
from headstart.heads.two_texts import split

D, WIDTH = 6, 4
QUESTION, CONTEXT = [3, 1, 2, 2], [4, 1, 6, 3]
LENGTHS = [n + m for n, m in zip(QUESTION, CONTEXT, strict=True)]
MASK = torch.arange(8) < torch.tensor(LENGTHS)[:, None]
FIRST_CONTEXT = torch.tensor(QUESTION)
PARTS = ((torch.arange(8) >= FIRST_CONTEXT[:, None]) & MASK).long()
STARTS, ENDS = torch.tensor([4, 0, 2, 3]), torch.tensor([5, 0, 7, 3])


def head(joined: int = 0, **settings: object) -> Head:
    torch.manual_seed(0)
    made = span_head(D, joined, SpanHeadConfig(**{"width": WIDTH, **settings})).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def vectors(width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(*MASK.shape, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("joined", [0, 3])
@pytest.mark.parametrize("reads", ["together", "apart"])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_padding_and_neighbours_change_nothing(cell: str, reads: str, joined: int) -> None:
    if cell == "none" and joined:
        pytest.skip("nothing is joined to vectors that no network reads")
    net, x = head(joined, cell=cell, reads=reads), vectors()
    beside = vectors(joined, seed=2) if joined else None
    scores = net(x, MASK, beside, None, PARTS)
    assert scores.shape == (4, 8, 2)
    assert not scores[~MASK].any()
    garbage = x.where(MASK[..., None], 50 * vectors(seed=5))
    torch.testing.assert_close(net(garbage, MASK, beside, None, PARTS), scores, rtol=0, atol=1e-6)
    losses = []
    for b, n in enumerate(LENGTHS):
        row = slice(b, b + 1)
        own = None if beside is None else beside[row, :n]
        alone = net(x[row, :n], MASK[row, :n], own, None, PARTS[row, :n])
        torch.testing.assert_close(alone[0], scores[b, :n], rtol=0, atol=1e-6)
        losses.append(span_loss(alone, MASK[row, :n], STARTS[row], ENDS[row], FIRST_CONTEXT[row]))
    together = span_loss(scores, MASK, STARTS, ENDS, FIRST_CONTEXT)
    torch.testing.assert_close(together, torch.stack(losses).sum(), rtol=1e-5, atol=1e-5)


def test_attention_both_ways_by_a_plain_loop() -> None:
    torch.manual_seed(0)
    similarity = TrilinearSimilarity(torch.randn(D))
    weights = torch.cat([similarity.context.weight[0], similarity.question.weight[0], similarity.product]).detach()
    states = split(vectors(), MASK, PARTS)
    with torch.no_grad():
        scores = similarity(states)
        to_query, to_context = attention_both_ways(scores, states)
    for b, (n, m) in enumerate(zip(QUESTION, CONTEXT, strict=True)):
        q, c = states.first[b, :n], states.second[b, :m]
        by_hand = torch.stack(
            [torch.stack([weights @ torch.cat([c[i], q[j], c[i] * q[j]]) for j in range(n)]) for i in range(m)]
        )
        torch.testing.assert_close(scores[b, :m, :n], by_hand)
        for i in range(m):
            torch.testing.assert_close(to_query[b, i], by_hand[i].softmax(dim=0) @ q)
        best = torch.stack([max(by_hand[i]) for i in range(m)])
        torch.testing.assert_close(to_context[b, 0], best.softmax(dim=0) @ c)


@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_texts_without_words_give_finite_scores(cell: str) -> None:
    net = head(cell=cell)
    assert isinstance(net, AttentiveSpanHead)
    mask, parts = MASK.clone(), PARTS.clone()
    mask[0] = False  # no words at all
    parts[1] = 0  # no context
    parts[2] = 1  # no question
    x = vectors().requires_grad_()
    scores = net(x, mask, None, None, parts)
    assert not scores[0].any()
    torch.testing.assert_close(scores[1, 0], net.none.bias)
    assert not scores[1, 1:].any()
    n = LENGTHS[2]
    alone = net(x[2:3, :n], mask[2:3, :n], None, None, parts[2:3, :n])
    torch.testing.assert_close(alone[0], scores[2, :n], rtol=0, atol=1e-6)
    span_loss(scores, mask, torch.zeros_like(STARTS), torch.zeros_like(ENDS), torch.tensor([0, 2, 0, 2])).backward()
    for tensor in (x, *net.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("reads", ["together", "apart"])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_every_parameter_gets_a_gradient(cell: str, reads: str) -> None:
    net = head(cell=cell, reads=reads)
    span_loss(net(vectors(), MASK, None, None, PARTS), MASK, STARTS, ENDS, FIRST_CONTEXT).backward()
    unused = {id(parameter) for parameter in net.unused_parameters()}
    assert bool(unused) == (reads == "together")
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        # A gradient that is zero in theory is a rounding error in practice.
        assert bool((parameter.grad.abs() > 1e-6).any()) != (id(parameter) in unused), name


@pytest.mark.parametrize("reads", ["together", "apart"])
@pytest.mark.parametrize("cell", ["lstm", "none"])
def test_it_overfits_eight_questions(cell: str, reads: str) -> None:
    """Some of them have no answer."""
    torch.manual_seed(0)
    D = 32
    net = span_head(D, 0, SpanHeadConfig(cell=cell, reads=reads, width=16, dropout=0.0))  # type: ignore[arg-type]
    x, mask, parts = torch.randn(8, 8, D), MASK.repeat(2, 1), PARTS.repeat(2, 1)
    starts, ends = STARTS.repeat(2), ENDS.repeat(2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(180):
        scores = net(x, mask, None, None, parts)
        loss = span_loss(scores, mask, starts, ends, FIRST_CONTEXT.repeat(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_together_is_a_linear_layer_on_each_vector() -> None:
    net, x = head(reads="together", cell="none"), vectors()
    assert isinstance(net, PlainSpanHead)
    assert net.is_plain
    torch.testing.assert_close(net(x, MASK, None, None, PARTS)[MASK], net.output(x[MASK]))
    assert not head(reads="together", cell="gru").is_plain
    assert not head(cell="none").is_plain


def test_the_score_of_no_answer_depends_on_the_context() -> None:
    net, x = head(), vectors()
    other = x.clone()
    other[0, LENGTHS[0] - 1] += 1.0
    before, after = net(x, MASK, None, None, PARTS), net(other, MASK, None, None, PARTS)
    assert not torch.equal(before[0, 0], after[0, 0])
    assert not before[0, 1 : QUESTION[0]].any()


def test_the_loss_is_of_no_answer_and_the_context_alone() -> None:
    scores = vectors(2)
    by_hand = 0.0
    for b, n in enumerate(LENGTHS):
        columns = [0, *range(QUESTION[b], n)]
        for side, gold in enumerate((STARTS, ENDS)):
            log_p = scores[b, columns, side].log_softmax(dim=0)
            by_hand -= float(log_p[columns.index(int(gold[b]))]) / 2
    assert span_loss(scores, MASK, STARTS, ENDS, FIRST_CONTEXT).item() == pytest.approx(by_hand, rel=1e-5)


def test_a_sequence_of_both_texts_is_read_by_its_pieces() -> None:
    together, apart = SpanHeadConfig(reads="together"), SpanHeadConfig()
    assert together.reads_together
    assert together.reads_first_position
    assert together.reads_every_piece
    assert not apart.reads_together
    assert not apart.reads_first_position
    assert not apart.reads_every_piece
