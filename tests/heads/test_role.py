"""The head of semantic roles: rows that ask for roles and rows that ask for predicates, in one batch."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from headstart.heads.recurrent import CELLS
from headstart.heads.role import FURTHEST, RoleHead, RoleHeadConfig, places_from
from headstart.heads.tag import LegalTags
from headstart.tasks.spans import illegal_places, legal_transitions, tag_names

D, WIDTH = 6, 4
NAMES = tag_names([["B-ARG0", "B-V"]], "bio")
C = len(NAMES)
LENGTHS = [5, 3, 7, 1]
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
PLACES = {0: 2, 2: 0}
"""The row of each marked predicate, and its word."""
PARTS = torch.zeros(MASK.shape, dtype=torch.long)
for _row, _word in PLACES.items():
    PARTS[_row, _word] = 1
DECODERS = ["crf", "constrained"]


def head(joined: int = 0, **settings: object) -> RoleHead:
    """Its parameters are moved away from their start, as training moves them; the unused ones stay."""
    torch.manual_seed(0)
    config = RoleHeadConfig(**{"width": WIDTH, "mark_width": 3, **settings})  # type: ignore[arg-type]
    made = RoleHead(D, joined, LegalTags(*legal_transitions(NAMES, "bio")), config).eval()
    unused = {id(parameter) for parameter in made.unused_parameters()}
    with torch.no_grad():
        for parameter in made.parameters():
            if id(parameter) not in unused:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def vectors(width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(*MASK.shape, width, generator=torch.Generator().manual_seed(seed))


def gold() -> Tensor:
    """Legal tags in marked rows, C or C + 1 in the others, (B, W); 0 at padding, as it is padded."""
    begin, inside = NAMES.index("B-ARG0"), NAMES.index("I-ARG0")
    found = C + torch.randint(2, MASK.shape, generator=torch.Generator().manual_seed(2))
    for row in PLACES:
        found[row] = torch.tensor([begin, inside, NAMES.index("O"), begin, begin, inside, inside])
    return found.masked_fill(~MASK, 0)


def test_the_loss_is_each_words_cross_entropy_among_its_own_columns() -> None:
    net, scores, wanted = head(), vectors(C + 2, seed=3), gold()
    by_hand = 0.0
    for b, n in enumerate(LENGTHS):
        for w in range(n):
            own = scores[b, w, :C] if b in PLACES else scores[b, w, C:]
            number = int(wanted[b, w]) - (0 if b in PLACES else C)
            by_hand += float(own.logsumexp(dim=0) - own[number])
    assert net.loss(scores, MASK, wanted).item() == pytest.approx(by_hand, rel=1e-5)


def test_with_a_crf_the_marked_rows_have_the_loss_of_whole_sequences() -> None:
    """The probabilities of all legal sequences sum to one."""
    net, W = head(decoder="crf"), 3
    scores, mask = vectors(C + 2, seed=3)[:1, :W], torch.ones(1, W, dtype=torch.bool)
    total = 0.0
    for tags in itertools.product(range(C), repeat=W):
        if not illegal_places([NAMES[tag] for tag in tags], "bio"):
            total += torch.exp(-net.loss(scores, mask, torch.tensor([tags]))).item()
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("mark", ["embedding", "segment"])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_padding_and_neighbours_change_nothing(cell: str, mark: str, decoder: str) -> None:
    net, x, wanted = head(cell=cell, mark=mark, decoder=decoder), vectors(), gold()
    together = net(x, MASK, parts=PARTS)
    assert together.shape == (*MASK.shape, C + 2)
    garbage = net(x.masked_fill(~MASK[..., None], 50.0), MASK, parts=PARTS)
    torch.testing.assert_close(garbage[MASK], together[MASK], rtol=0, atol=1e-6)
    losses = []
    for b, n in enumerate(LENGTHS):
        row, mask = slice(b, b + 1), MASK[b : b + 1, :n]
        alone = net(x[row, :n], mask, parts=PARTS[row, :n])
        torch.testing.assert_close(alone[0], together[b, :n], rtol=0, atol=1e-6)
        losses.append(net.loss(alone, mask, wanted[row, :n]))
    torch.testing.assert_close(net.loss(together, MASK, wanted), torch.stack(losses).sum(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("decoder", DECODERS)
def test_roles_learn_from_marked_rows_alone_and_predicates_from_the_others(decoder: str) -> None:
    marked, others = sorted(PLACES), [row for row in range(len(LENGTHS)) if row not in PLACES]
    net = head(decoder=decoder)
    of_roles = [*net.roles.parameters(), *([] if decoder == "constrained" else net.crf.parameters())]
    of_predicates = list(net.predicates.parameters())
    for chosen, learning, still in ((marked, of_roles, of_predicates), (others, of_predicates, of_roles)):
        net.zero_grad()
        scores = net(vectors()[chosen], MASK[chosen], parts=PARTS[chosen])
        net.loss(scores, MASK[chosen], gold()[chosen]).backward()
        assert all(p.grad is not None and bool(p.grad.any()) for p in learning)
        assert not any(p.grad is not None and bool(p.grad.any()) for p in still)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("mark", ["embedding", "segment"])
def test_unused_parameters_are_those_without_a_gradient(mark: str, decoder: str) -> None:
    net = head(mark=mark, decoder=decoder)
    net.loss(net(vectors(), MASK, parts=PARTS), MASK, gold()).backward()
    unused = {id(parameter) for parameter in net.unused_parameters()}
    assert bool(unused) == (decoder == "constrained")
    for name, parameter in net.named_parameters():
        has_gradient = parameter.grad is not None and bool(parameter.grad.any())
        assert has_gradient != (id(parameter) in unused), name


def test_the_mark_moves_the_scores_only_where_the_head_reads_it() -> None:
    """BERT itself reads a mark that is a segment."""
    none = torch.zeros_like(PARTS)
    for mark, moves in (("embedding", True), ("segment", False)):
        net = head(mark=mark)
        same = torch.equal(net(vectors(), MASK, parts=PARTS), net(vectors(), MASK, parts=none))
        assert same != moves
        assert RoleHeadConfig(mark=mark).reads_together != moves  # type: ignore[arg-type]


def test_without_marks_there_is_nothing_to_ask() -> None:
    with pytest.raises(ValueError, match="needs parts"):
        head()(vectors(), MASK)


def test_places_are_counted_from_the_predicate() -> None:
    parts = torch.zeros(2, 2 * FURTHEST, dtype=torch.long)
    parts[0, 1] = 1
    marked, unmarked = places_from(parts).tolist()
    assert unmarked == [0] * (2 * FURTHEST)
    here = FURTHEST + 1
    assert marked[:4] == [here - 1, here, here + 1, here + 2]
    assert marked[FURTHEST + 1 :] == [here + FURTHEST] * (FURTHEST - 1)  # far away, all places are one


def test_every_word_reads_the_states_of_the_predicate() -> None:
    net, x = head(cell="none"), vectors()
    moved = x.clone()
    moved[0, 2] += 1  # the predicate of row 0
    changed = (net(x, MASK, parts=PARTS) - net(moved, MASK, parts=PARTS))[0, :, :C].abs().sum(dim=1)
    assert bool((changed[: LENGTHS[0]] > 0).all())
