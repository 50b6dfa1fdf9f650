from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.errors import DataError
from headstart.heads.crf import LinearChainCrf, steps_between_any, viterbi
from headstart.tasks.spans import illegal_places, legal_transitions, tag_names

NAMES = tag_names([["B-X"]], "bioes")
TAG_COUNT = len(NAMES)


def crf_of(kind: str, scale: float = 1.0) -> LinearChainCrf:
    """free: everything is allowed; bioes: what BIOES allows; dead end: a tag that nothing may follow."""
    g = torch.Generator().manual_seed(1)
    if kind == "free":
        crf = LinearChainCrf(TAG_COUNT)
    elif kind == "bioes":
        crf = LinearChainCrf(TAG_COUNT, *legal_transitions(NAMES, "bioes"))
    else:
        transition = np.ones((TAG_COUNT, TAG_COUNT), dtype=bool)
        transition[2] = False
        crf = LinearChainCrf(TAG_COUNT, None, transition, None)
    crf = crf.double()
    for parameter in crf.parameters():
        parameter.data = scale * torch.randn(parameter.shape, generator=g, dtype=torch.float64)
    return crf


def batch_of(lengths: list[int], scale: float = 1.0) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    emissions = scale * torch.randn(len(lengths), max(lengths), TAG_COUNT, generator=g, dtype=torch.float64)
    return emissions, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def enumerated(crf: LinearChainCrf, emissions: Tensor) -> tuple[Tensor, Tensor]:
    """All sequences of one row (N, W), and their scores (N,). emissions: (W, C)."""
    W = len(emissions)
    sequences = torch.tensor(list(itertools.product(range(TAG_COUNT), repeat=W)))
    start, transitions, end = crf.scores()
    scores = start[sequences[:, 0]] + end[sequences[:, -1]] + emissions[torch.arange(W), sequences].sum(dim=1)
    return sequences, scores + transitions[sequences[:, :-1], sequences[:, 1:]].sum(dim=1)


KINDS = ["free", "bioes", "dead end"]
SCALES = [1.0, 300.0]  # the second is beyond what the recursion in exponentials can hold
LENGTHS = [4, 1, 3, 2]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_enumeration_of_all_sequences(kind: str, scale: float) -> None:
    crf, (emissions, mask) = crf_of(kind, scale), batch_of(LENGTHS, scale)
    log_z, marginals, best = (
        crf.log_partition(emissions, mask),
        crf.marginals(emissions, mask),
        crf.viterbi(emissions, mask),
    )
    for row, length in enumerate(LENGTHS):
        sequences, scores = enumerated(crf, emissions[row, :length])
        torch.testing.assert_close(log_z[row], scores.logsumexp(0))
        p = scores.softmax(0)
        for tag in range(TAG_COUNT):
            torch.testing.assert_close(marginals[row, :length, tag], ((sequences == tag) * p[:, None]).sum(dim=0))
        assert best[row] == sequences[scores.argmax()].tolist()
        tags = torch.zeros(1, length, dtype=torch.long) + sequences[scores.argmax()]
        score = crf.sequence_score(emissions[row : row + 1, :length], mask[row : row + 1, :length], tags)
        torch.testing.assert_close(score[0], scores.max())
        assert not marginals[row, length:].any()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_those_of_the_enumeration(kind: str, scale: float) -> None:
    crf, (emissions, mask) = crf_of(kind, scale), batch_of(LENGTHS, scale)
    emissions.requires_grad_()
    tags = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.long)  # O, which is legal everywhere
    inputs = [emissions, *crf.parameters()]
    ours = torch.autograd.grad(0.7 * crf.loss(emissions, mask, tags), inputs)
    total = torch.zeros((), dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        sequences, scores = enumerated(crf, emissions[row, :length])
        gold = int((sequences == 0).all(dim=1).nonzero())
        legal = scores > -torch.inf
        total = total + scores[legal].logsumexp(0) - scores[gold]
    for a, b in zip(ours, torch.autograd.grad(0.7 * total, inputs), strict=True):
        torch.testing.assert_close(a, b)
    assert not ours[2][~crf.transition_ok].any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_written_gradient_is_the_numerical_one(kind: str) -> None:
    crf, (emissions, mask) = crf_of(kind), batch_of([3, 0, 2])
    start, transitions, end = crf.start, crf.transitions, crf.end

    def log_partition(emissions: Tensor, *_: Tensor) -> Tensor:
        return crf.log_partition(emissions, mask)

    assert torch.autograd.gradcheck(log_partition, (emissions.requires_grad_(), start, transitions, end))


@pytest.mark.parametrize("scale", SCALES)
def test_padding_changes_nothing_whatever_stands_there(scale: float) -> None:
    crf, (emissions, mask) = crf_of("bioes", scale), batch_of([5, 2], scale)
    padded = torch.full((2, 9, TAG_COUNT), torch.nan, dtype=torch.float64)
    padded[mask.nonzero(as_tuple=True)] = emissions[mask]
    wide = torch.zeros(2, 9, dtype=torch.bool)
    wide[:, :5] = mask
    tags = torch.zeros(2, 9, dtype=torch.long)
    padded.requires_grad_()
    emissions.requires_grad_()
    losses = crf.loss(emissions, mask, tags[:, :5]), crf.loss(padded, wide, tags.masked_fill(~wide, -100))
    torch.testing.assert_close(*losses)
    a, b = torch.autograd.grad(losses[0], emissions)[0], torch.autograd.grad(losses[1], padded)[0]
    torch.testing.assert_close(a[mask], b[wide])
    assert not b[~wide].any()
    assert crf.viterbi(emissions, mask) == crf.viterbi(padded, wide)
    alone = crf.marginals(emissions[1:, :2], mask[1:, :2])
    torch.testing.assert_close(alone[0], crf.marginals(padded, wide)[1, :2])


def test_a_short_sentence_beside_a_long_one_has_its_own_gradients() -> None:
    crf, lengths = crf_of("free"), [600, 1, 0]
    emissions, mask = batch_of(lengths)
    tags = torch.zeros(3, 600, dtype=torch.long)
    together = torch.autograd.grad(crf.loss(emissions, mask, tags), list(crf.parameters()))
    apart = sum(
        crf.loss(emissions[i : i + 1, :n], mask[i : i + 1, :n], tags[i : i + 1, :n]) for i, n in enumerate(lengths)
    )
    for a, b in zip(together, torch.autograd.grad(apart, list(crf.parameters())), strict=True):
        torch.testing.assert_close(a, b)


def test_a_row_or_a_batch_without_words_costs_nothing() -> None:
    crf, (emissions, mask) = crf_of("bioes"), batch_of([2, 0])
    tags = torch.zeros(2, 2, dtype=torch.long)
    emissions.requires_grad_()
    assert crf.log_partition(emissions, mask)[1] == 0
    assert crf.sequence_score(emissions, mask, tags)[1] == 0
    torch.testing.assert_close(crf.loss(emissions, mask, tags), crf.loss(emissions[:1], mask[:1], tags[:1]))
    assert crf.viterbi(emissions, mask)[1] == []
    for rows, width in [(2, 0), (0, 2), (2, 2)]:
        nothing = torch.zeros(rows, width, TAG_COUNT, requires_grad=True)
        no_mask, no_tags = torch.zeros(rows, width, dtype=torch.bool), torch.zeros(rows, width, dtype=torch.long)
        loss = crf.loss(nothing, no_mask, no_tags)
        loss.backward()
        assert loss == 0
        assert crf.viterbi(nothing, no_mask) == [[]] * rows
        assert crf.marginals(nothing, no_mask).shape == nothing.shape


def test_it_starts_as_a_softmax_per_word() -> None:
    crf, (emissions, mask) = LinearChainCrf(TAG_COUNT), batch_of([4, 2])
    emissions = emissions.float()
    tags = torch.randint(0, TAG_COUNT, (2, 4), generator=torch.Generator().manual_seed(2))
    expected = torch.nn.functional.cross_entropy(emissions[mask], tags[mask], reduction="sum")
    torch.testing.assert_close(crf.loss(emissions, mask, tags), expected)
    torch.testing.assert_close(crf.marginals(emissions, mask)[mask], emissions.softmax(dim=2)[mask])


@pytest.mark.parametrize("scheme", ["iob1", "bio", "bioes"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_no_illegal_sequence_comes_out(scheme: str, scale: float) -> None:
    names = tag_names([["B-X", "B-Y"]], scheme)
    crf = LinearChainCrf(len(names), *legal_transitions(names, scheme))
    emissions = scale * torch.randn(50, 6, len(names), generator=torch.Generator().manual_seed(0))
    for path in crf.viterbi(emissions, torch.ones(50, 6, dtype=torch.bool)):
        assert illegal_places([names[tag] for tag in path], scheme) == []


def test_illegal_gold_tags_are_refused_with_their_place() -> None:
    crf, (emissions, mask) = crf_of("bioes"), batch_of([3, 3])
    B, E, inside = NAMES.index("B-X"), NAMES.index("E-X"), NAMES.index("I-X")
    for row, message in [
        ([inside, E, 0], rf"Sentence 2 of the batch, word 1 of 3: tag {inside} at the beginning is not allowed"),
        ([0, E, 0], rf"word 2 of 3: tag {E} after tag 0 is not"),
        ([0, 0, B], rf"word 3 of 3: tag {B} after tag 0 is not"),
    ]:
        with pytest.raises(DataError, match=message):
            crf.loss(emissions, mask, torch.tensor([[0, B, E], row]))


def test_wrong_use_is_refused() -> None:
    crf, (emissions, mask) = crf_of("free"), batch_of([3, 3])
    mask[0, 0] = False
    with pytest.raises(ValueError, match="real words after padding"):
        crf.viterbi(emissions, mask)
    with pytest.raises(ValueError, match="end_ok must have shape"):
        LinearChainCrf(2, None, None, np.ones(3, dtype=bool))
    stuck = LinearChainCrf(TAG_COUNT, None, np.zeros((TAG_COUNT, TAG_COUNT), dtype=bool), None)
    emissions, mask = batch_of([1, 2])
    for use in (stuck.viterbi, stuck.log_partition):
        with pytest.raises(ValueError, match="no sequence of 2 tags"):
            use(emissions, mask)


def test_constrained_decoding_takes_the_best_legal_sequence() -> None:
    names = ["O", "B-X", "I-X"]
    start, transition, end = (torch.tensor(ok) for ok in legal_transitions(names, "bio"))
    scores = [torch.zeros(ok.shape).masked_fill(~ok, -torch.inf) for ok in (start, transition, end)]
    emissions = torch.tensor([[[1.0, 0.0, 3.0], [0.0, 0.0, 2.0]]])
    assert emissions.argmax(dim=2).tolist() == [[2, 2]]
    assert viterbi(emissions, torch.ones(1, 2, dtype=torch.bool), *scores) == [[1, 2]]


def test_a_long_document() -> None:
    crf = LinearChainCrf(9)
    emissions = torch.randn(1, 50_000, 9, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(1, 50_000, dtype=torch.bool)
    assert crf.viterbi(emissions, mask) == [emissions[0].argmax(dim=1).tolist()]
    expected = emissions.double().logsumexp(dim=2).sum().float()
    torch.testing.assert_close(crf.log_partition(emissions, mask).detach()[0], expected)


def test_the_steps_between_any_two_tags() -> None:
    steps = {}
    for scheme in ("plain", "iob1", "bio", "bioes"):
        names = tag_names([["O", "B-X", "B-Y"]], scheme)
        steps[scheme] = steps_between_any(torch.tensor(legal_transitions(names, scheme)[1]))
    assert steps == {"plain": 1, "iob1": 2, "bio": 2, "bioes": 3}
    assert steps_between_any(torch.eye(3, dtype=torch.bool)) is None


def test_only_the_parameters_are_saved_and_all_are_learned() -> None:
    crf, (emissions, mask) = crf_of("bioes"), batch_of([4, 2])
    assert set(crf.state_dict()) == {"start", "transitions", "end"}
    crf.loss(emissions, mask, torch.zeros(2, 4, dtype=torch.long)).backward()
    for parameter, ok in [(crf.start, crf.start_ok), (crf.transitions, crf.transition_ok), (crf.end, crf.end_ok)]:
        assert (parameter.grad[ok] != 0).all()
        assert not parameter.grad[~ok].any()
