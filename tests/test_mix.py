import math

import pytest
import torch
from torch import Tensor

from headstart.encoders.representations import Representations
from headstart.errors import ConfigError
from headstart.mix import MIXES, Attention, Mix, MixConfig, Scalar, build_mix


def representations(layers: Tensor) -> Representations:
    return Representations(layers, torch.ones(layers.shape[1:3], dtype=torch.bool))


def one_number_per_layer(*values: float) -> Representations:
    return representations(torch.tensor(values, dtype=torch.float32).view(-1, 1, 1, 1))


def some(K: int = 3, B: int = 2, W: int = 4, D: int = 5) -> Representations:
    return representations(torch.randn(K, B, W, D, generator=torch.Generator().manual_seed(1)))


def scalar(s: list[float], gamma: float = 1.0, pull: float = 0.0) -> Scalar:
    mix = Scalar(MixConfig(pull=pull), len(s), 1)
    with torch.no_grad():
        mix.w.copy_(torch.tensor(s).log() + 7.0)  # the softmax forgets what all have in common
        mix.gamma.fill_(gamma)
    return mix


def test_scalar_weighs_layers_by_softmax_and_scales() -> None:
    mix = scalar([0.2, 0.2, 0.6], gamma=2.0)
    assert mix(one_number_per_layer(1, 2, 3)).item() == pytest.approx(2 * (0.2 * 1 + 0.2 * 2 + 0.6 * 3))
    learned = mix.learned()
    assert learned["weights"] == pytest.approx([0.2, 0.2, 0.6])
    assert learned["gamma"] == 2.0


def test_every_weighted_mix_starts_as_the_mean() -> None:
    R = some()
    for kind in ("scalar", "mean", "attention"):
        torch.testing.assert_close(build_mix(MixConfig(kind=kind), 3, 5)(R), R.layers.mean(dim=0))


def test_the_pull_is_the_squared_distance_of_the_weights_to_their_mean() -> None:
    assert scalar([0.2, 0.3, 0.5], pull=2.0).penalty().item() == pytest.approx(
        2 * sum((s - 1 / 3) ** 2 for s in (0.2, 0.3, 0.5))
    )
    assert scalar([1 / 3] * 3, pull=2.0).penalty().item() == pytest.approx(0, abs=1e-12)
    mix = scalar([0.2, 0.3, 0.5], pull=2.0)
    mix.penalty().backward()
    assert mix.w.grad is not None
    assert mix.w.grad[0] < 0 < mix.w.grad[2]  # a step against the gradient brings them together


def test_mixes_without_layer_weights_have_no_penalty_and_nothing_to_show() -> None:
    for kind in ("last", "mean", "concat", "attention"):
        mix = build_mix(MixConfig(kind=kind, pull=1.0), 3, 5)
        assert mix.penalty().item() == 0
        assert mix.learned() is None


def test_last_is_the_top_layer() -> None:
    assert build_mix(MixConfig(kind="last"), 3, 1)(one_number_per_layer(1, 2, 3)).item() == 3


@pytest.mark.parametrize(("K", "expected"), [(6, [3, 4, 5, 6]), (2, [1, 2])])
def test_concat_puts_the_last_four_side_by_side(K: int, expected: list[float]) -> None:
    mix = build_mix(MixConfig(kind="concat"), K, 1)
    assert mix(one_number_per_layer(*range(1, K + 1)))[0, 0].tolist() == expected
    assert mix.out_width == len(expected)
    assert build_mix(MixConfig(kind="concat"), K, 5)(some(K)).shape == (2, 4, 5 * len(expected))


def test_attention_weighs_the_layers_of_each_word() -> None:
    mix = Attention(MixConfig(kind="attention"), 2, 1)
    with torch.no_grad():
        mix.W.fill_(0.5)
        mix.v.fill_(3.0)
    R = representations(torch.tensor([[1.0, 0.0], [2.0, 0.0]]).view(2, 1, 2, 1))
    scores = [3 * math.tanh(0.5), 3 * math.tanh(1.0)]
    a = math.exp(scores[0]) / (math.exp(scores[0]) + math.exp(scores[1]))
    assert mix(R).flatten().tolist() == pytest.approx([a * 1 + (1 - a) * 2, 0.0])


def test_norm_gives_each_word_mean_0_and_variance_1_whatever_its_neighbours() -> None:
    R, mix = some(), build_mix(MixConfig(kind="last", norm=True), 3, 5)
    mixed = mix(R)
    torch.testing.assert_close(mixed.mean(dim=-1), torch.zeros(2, 4), atol=1e-6, rtol=0)
    torch.testing.assert_close(mixed.var(dim=-1, unbiased=False), torch.ones(2, 4), atol=1e-3, rtol=0)
    alone = mix(Representations(R.layers[:, :1, :1], R.mask[:1, :1]))
    torch.testing.assert_close(alone, mixed[:1, :1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("kind", MIXES)
def test_every_mix_is_finite_on_zeros_with_its_gradient(kind: str, norm: bool) -> None:
    mix: Mix = build_mix(MixConfig(kind=kind, norm=norm), 3, 5)
    layers = torch.zeros(3, 1, 2, 5, requires_grad=True)
    mixed = mix(representations(layers))
    assert mixed.shape == (1, 2, mix.out_width)
    mixed.sum().backward()
    assert layers.grad is not None
    assert mixed.isfinite().all()
    assert layers.grad.isfinite().all()


@pytest.mark.parametrize("kind", MIXES)
def test_another_number_of_layers_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"built for 3 layers, but the encoder gave 4"):
        build_mix(MixConfig(kind=kind), 3, 5)(some(K=4))


@pytest.mark.parametrize("kind", MIXES)
def test_unused_parameters_get_no_gradient_and_the_others_do(kind: str) -> None:
    for K in (1, 3):
        mix, R = build_mix(MixConfig(kind=kind), K, 5), some(K)
        R.layers.requires_grad_()
        with torch.no_grad():
            for parameter in mix.parameters():
                parameter.add_(torch.rand_like(parameter))
        (mix(R) ** 2).sum().backward()
        unused = {id(parameter) for parameter in mix.unused_parameters()}
        for parameter in mix.parameters():
            assert parameter.grad is not None
            assert bool(parameter.grad.abs().max() < 1e-6) == (id(parameter) in unused)
