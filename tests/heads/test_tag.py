from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from headstart.heads.crf import viterbi
from headstart.heads.recurrent import CELLS
from headstart.heads.tag import LegalTags, TagHead, TagHeadConfig
from headstart.tasks.spans import Scheme, illegal_places, legal_transitions, tag_names

D, WIDTH = 6, 4
LENGTHS = [5, 2, 7, 1]
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
DECODERS = ["crf", "constrained"]
NAMES = tag_names([["B-LOC", "B-PER"]], "bio")
AT_PADDING = -100


def head(joined: int = 0, scheme: Scheme = "bio", **settings: object) -> TagHead:
    """Its parameters are moved away from their start, as training moves them; the unused ones stay."""
    torch.manual_seed(0)
    names = tag_names([["B-LOC", "B-PER"]], scheme)
    config = TagHeadConfig(**{"width": WIDTH, **settings})  # type: ignore[arg-type]
    made = TagHead(D, joined, LegalTags(*legal_transitions(names, scheme)), config).eval()
    unused = {id(parameter) for parameter in made.unused_parameters()}
    with torch.no_grad():
        for parameter in made.parameters():
            if id(parameter) not in unused:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def vectors(width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(*MASK.shape, width, generator=torch.Generator().manual_seed(seed))


def legal_tags(net: TagHead) -> Tensor:
    """Tags that the scheme allows, (B, W), with a number at padding that is no tag."""
    emissions = vectors(net.output.out_features, seed=4)
    tags = torch.full(MASK.shape, AT_PADDING)
    for row, found in enumerate(net.crf.viterbi(emissions, MASK)):
        tags[row, : len(found)] = torch.tensor(found)
    return tags


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("joined", [0, 3])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_padding_and_neighbours_change_nothing(cell: str, joined: int, decoder: str) -> None:
    net, x = head(joined, cell=cell, decoder=decoder), vectors()
    beside = vectors(joined, seed=2) if joined else None
    tags = legal_tags(net)
    together = net(x, MASK, beside)
    other = net(x.masked_fill(~MASK[..., None], 50.0), MASK, beside)
    torch.testing.assert_close(other[MASK], together[MASK], rtol=0, atol=1e-6)
    losses = []
    for b, n in enumerate(LENGTHS):
        row, mask = slice(b, b + 1), MASK[b : b + 1, :n]
        alone = net(x[row, :n], mask, None if beside is None else beside[row, :n])
        torch.testing.assert_close(alone[0], together[b, :n], rtol=0, atol=1e-6)
        assert net.crf.viterbi(alone, mask) == net.crf.viterbi(together, MASK)[row]
        losses.append(net.loss(alone, mask, tags[row, :n]))
    torch.testing.assert_close(net.loss(together, MASK, tags), torch.stack(losses).sum(), rtol=1e-5, atol=1e-5)


def test_constrained_decoding_is_viterbi_without_scores_of_transitions() -> None:
    net = head(decoder="constrained")
    emissions = vectors(len(NAMES), seed=3)
    allowed = [torch.from_numpy(ok) for ok in legal_transitions(NAMES, "bio")]
    zeros = [torch.zeros(ok.shape).masked_fill(~ok, -torch.inf) for ok in allowed]
    decoded = net.crf.viterbi(emissions, MASK)
    assert decoded == viterbi(emissions, MASK, *zeros)
    for row, found in zip(emissions, decoded, strict=True):
        best = row[: len(found)].argmax(dim=1).tolist()
        if not illegal_places([NAMES[tag] for tag in best], "bio"):
            assert found == best


def test_constrained_decoding_takes_the_best_of_all_legal_sequences() -> None:
    net, W = head(decoder="constrained"), 4
    emissions = vectors(len(NAMES), seed=6)[:1, :W]
    legal = [
        tags
        for tags in itertools.product(range(len(NAMES)), repeat=W)
        if not illegal_places([NAMES[tag] for tag in tags], "bio")
    ]
    best = max(legal, key=lambda tags: float(emissions[0, list(range(W)), list(tags)].double().sum()))
    assert net.crf.viterbi(emissions, torch.ones(1, W, dtype=torch.bool)) == [list(best)]


def test_the_constrained_loss_is_each_words_cross_entropy() -> None:
    net = head(decoder="constrained")
    emissions, tags = vectors(len(NAMES), seed=3), legal_tags(net)
    by_hand = sum(
        float(emissions[b, w].logsumexp(dim=0) - emissions[b, w, tags[b, w]])
        for b, n in enumerate(LENGTHS)
        for w in range(n)
    )
    assert net.loss(emissions, MASK, tags).item() == pytest.approx(by_hand, rel=1e-5)


def test_the_loss_of_the_crf_is_of_whole_sequences() -> None:
    """The probabilities of all legal sequences sum to one."""
    net, W = head(decoder="crf"), 3
    emissions, mask = vectors(len(NAMES), seed=3)[:1, :W], torch.ones(1, W, dtype=torch.bool)
    total = 0.0
    for tags in itertools.product(range(len(NAMES)), repeat=W):
        if not illegal_places([NAMES[tag] for tag in tags], "bio"):
            total += torch.exp(-net.loss(emissions, mask, torch.tensor([tags]))).item()
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("scheme", ["iob1", "bio", "bioes", "bilou"])
def test_no_illegal_sequence_comes_out(scheme: Scheme, decoder: str) -> None:
    net = head(scheme=scheme, decoder=decoder)
    names = tag_names([["B-LOC", "B-PER"]], scheme)
    for seed in range(10):
        for tags in net.crf.viterbi(5 * vectors(len(names), seed=seed), MASK):
            assert illegal_places([names[tag] for tag in tags], scheme) == []


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_unused_parameters_are_those_without_a_gradient(cell: str, decoder: str) -> None:
    net = head(cell=cell, decoder=decoder)
    net.loss(net(vectors(), MASK), MASK, legal_tags(net)).backward()
    unused = {id(parameter) for parameter in net.unused_parameters()}
    assert bool(unused) == (decoder == "constrained")
    for name, parameter in net.named_parameters():
        has_gradient = parameter.grad is not None and bool(parameter.grad.any())
        assert has_gradient != (id(parameter) in unused), name
