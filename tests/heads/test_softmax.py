import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.cores import on_cores
from headstart.errors import ConfigError
from headstart.heads.softmax import LogUniform, sampled_softmax_loss, softmax_loss


def problem(N: int, D: int, V: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    h, weight, bias = (torch.randn(*shape, generator=g).requires_grad_() for shape in [(N, D), (V, D), (V,)])
    return h, weight, bias, torch.randint(0, V, (N,), generator=g)


@pytest.mark.parametrize("chunk", [1, 4, 7, 512])
@pytest.mark.parametrize("with_bias", [True, False])
def test_equals_cross_entropy_with_its_gradients(chunk: int, with_bias: bool) -> None:
    h, weight, bias, targets = problem(11, 5, 13)
    inputs = [h, weight, bias] if with_bias else [h, weight]
    logits = h @ weight.t() + (bias if with_bias else 0)
    expected = F.cross_entropy(logits, targets, reduction="sum")
    loss = softmax_loss(h, weight, bias if with_bias else None, targets, chunk=chunk)
    torch.testing.assert_close(loss.total, expected, rtol=1e-5, atol=1e-5)
    assert loss.correct == int((logits.argmax(dim=1) == targets).sum())
    ours = torch.autograd.grad(loss.total * 0.3, inputs)
    for a, b in zip(ours, torch.autograd.grad(expected * 0.3, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_extreme_logits_stay_finite() -> None:
    h = torch.tensor([[1e4], [-1e4]])
    loss = softmax_loss(h, torch.tensor([[1.0], [0.0]]), None, torch.tensor([0, 0]))
    assert loss.total.item() == pytest.approx(1e4)
    assert loss.correct == 1


def test_nothing_to_predict_costs_nothing() -> None:
    h, weight, bias, targets = problem(3, 2, 4)
    loss = softmax_loss(h[:0], weight, bias, targets[:0])
    loss.total.backward()
    assert loss.total.item() == loss.correct == 0
    assert not weight.grad.any()


def test_log_uniform_draws_as_its_formula_says() -> None:
    sampler = LogUniform(50)
    p = sampler.probability(torch.arange(50))
    assert p.sum().item() == pytest.approx(1)
    assert p[0].item() == pytest.approx(math.log(2) / math.log(51))
    generator = torch.Generator().manual_seed(0)
    seen, expected, rounds = torch.zeros(50), torch.zeros(50, dtype=torch.float64), 1500
    for _ in range(rounds):
        ids, tries = sampler.sample(10, generator)
        assert len(ids.unique()) == 10
        assert tries >= 10
        seen[ids] += 1
        expected += sampler.expected_count(torch.arange(50), tries)
    torch.testing.assert_close(seen.double() / rounds, expected / rounds, atol=0.04, rtol=0.1)


def test_same_generator_same_sample() -> None:
    first, second = (LogUniform(1000).sample(64, torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(first[0], second[0])
    assert first[1] == second[1]


def test_sampling_every_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="got 50 samples of 50 words"):
        LogUniform(50).sample(50, None)


class OneSample(LogUniform):
    """Always draws the same words, in as many tries."""

    def __init__(self, vocabulary_size: int, ids: list[int]) -> None:
        super().__init__(vocabulary_size)
        self.ids = ids

    def sample(self, n: int, generator: torch.Generator | None) -> tuple[Tensor, int]:
        return torch.tensor(self.ids), 3


def test_sampled_loss_by_hand() -> None:
    V = 4
    h, weight, bias = torch.tensor([[2.0], [1.0]]), torch.tensor([[0.5], [1.0], [-1.0], [9.0]]), torch.arange(4.0)
    targets = torch.tensor([1, 0])

    def lowered(row: int, word: int) -> float:
        p = math.log((word + 2) / (word + 1)) / math.log(V + 1)
        return h[row].item() * weight[word].item() + bias[word].item() - math.log(1 - (1 - p) ** 3)

    # Words 0 and 2 are drawn; the second row's own target, 0, is not held against it.
    rows = [[lowered(0, 1), lowered(0, 0), lowered(0, 2)], [lowered(1, 0), lowered(1, 2)]]
    expected = sum(math.log(sum(math.exp(x) for x in row)) - row[0] for row in rows)
    loss = sampled_softmax_loss(h, weight, bias, targets, OneSample(V, [0, 2]), 2, None)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_only_rows_in_play_get_a_gradient() -> None:
    h, weight, bias, targets = problem(4, 3, 40)
    sampled_softmax_loss(h, weight, bias, targets, OneSample(40, [0, 2, 39]), 3, None).backward()
    touched = set(weight.grad.abs().sum(dim=1).nonzero().flatten().tolist())
    assert touched == {0, 2, 39, *targets.tolist()}


def test_sampled_gradient_nears_the_full_one_as_samples_grow() -> None:
    h, weight, bias, targets = problem(32, 8, 200)
    full = torch.autograd.grad(softmax_loss(h, weight, bias, targets).total, h)[0].flatten()
    generator = torch.Generator().manual_seed(0)

    def cosine(samples: int, rounds: int) -> float:
        total = torch.zeros_like(full)
        for _ in range(rounds):
            loss = sampled_softmax_loss(h, weight, bias, targets, LogUniform(200), samples, generator)
            total += torch.autograd.grad(loss, h)[0].flatten()
        return F.cosine_similarity(total, full, dim=0).item()

    assert 0.6 < cosine(5, 1) < cosine(50, 1) < cosine(199, 1)
    assert cosine(199, 1) > 0.99
    assert cosine(20, 100) > cosine(20, 1)


def test_sampled_loss_nears_the_full_one() -> None:
    h, weight, bias, targets = problem(32, 8, 200)
    full = softmax_loss(h, weight, bias, targets).total.item()
    generator = torch.Generator().manual_seed(0)
    losses = [
        sampled_softmax_loss(h, weight, bias, targets, LogUniform(200), samples, generator).item()
        for samples in (20, 199)
    ]
    assert abs(losses[1] - full) < abs(losses[0] - full)
    assert losses[1] == pytest.approx(full, rel=0.02)


@pytest.mark.usefixtures("two_threads")
def test_in_a_share_of_a_step_the_gradient_is_the_rows_in_play_and_equal() -> None:
    h, weight, bias, targets = problem(11, 5, 40)

    def loss_and_gradients() -> list[Tensor]:
        generator = torch.Generator().manual_seed(2)
        loss = sampled_softmax_loss(h, weight, bias, targets, LogUniform(40), 8, generator)
        return [loss, *torch.autograd.grad(loss, [h, weight, bias])]

    whole = loss_and_gradients()
    shares = on_cores([loss_and_gradients, loss_and_gradients])
    for share in shares:
        assert share[2].is_sparse
        assert share[2]._nnz() <= 11 + 8
        for a, b in zip(share, whole, strict=True):
            torch.testing.assert_close(a.to_dense(), b)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_the_sampled_loss_in_pieces_has_the_value_and_gradients_of_the_whole(chunk: int) -> None:
    h, weight, bias, targets = problem(11, 5, 40)
    sampler, drawn = LogUniform(40), [0, 2, 39, int(targets[3])]
    negatives = torch.tensor(list(dict.fromkeys(drawn)))
    found = sampled_softmax_loss(h, weight, bias, targets, OneSample(40, negatives.tolist()), 4, None, chunk)

    tries = OneSample(40, negatives.tolist()).sample(4, None)[1]
    logits = h @ weight[negatives].t() + bias[negatives] - sampler.expected_count(negatives, tries).log().to(h)
    logits = logits.masked_fill(targets[:, None] == negatives, -torch.inf)
    gold = (h * weight[targets]).sum(1) + bias[targets] - sampler.expected_count(targets, tries).log().to(h)
    expected = (torch.cat([gold[:, None], logits], dim=1).logsumexp(1) - gold).sum()

    torch.testing.assert_close(found, expected)
    weighted = [torch.autograd.grad(3 * loss, [h, weight, bias]) for loss in (found, expected)]
    for ours, plain in zip(*weighted, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=1e-5)
