"""int8: exact on its grid, near float32 off it, blind to a sentence's neighbours, and for use only."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import headstart
from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.encoders.kernels import int8 as module
from headstart.encoders.kernels.int8 import INPUT_STEPS, Int8Linear, check_processor, weight_steps
from headstart.encoders.static import Static, StaticConfig
from headstart.errors import ConfigError
from headstart.pretrained import save_run
from headstart.transfer.features import encoder_fingerprint

LENGTHS = [9, 9, 5, 1, 7, 5]


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    made = nn.Linear(len(weight[0]), len(weight))
    made.weight.data, made.bias.data = torch.tensor(weight), torch.tensor(bias)
    return made


def random_linear(inputs: int, outputs: int) -> nn.Linear:
    torch.manual_seed(inputs)
    made = nn.Linear(inputs, outputs)
    made.weight.data *= torch.rand(outputs, 1) * 3  # every row needs its own scale
    return made


def bert() -> Bert:
    torch.manual_seed(0)
    return Bert(BertConfig(**{**BERT_SIZES["tiny"], "positions": 16}), vocabulary_size=40).eval()


def sequences() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return torch.randint(1, 40, mask.shape) * mask, mask


def states(encoder: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    with torch.no_grad():
        return encoder(ids, mask).layers  # type: ignore[no-any-return]


def test_numbers_on_the_grid_give_the_exact_product() -> None:
    layer = Int8Linear.of(linear([[127.0, -3.0, 0.0], [0.5, 1.0, -63.5]], [0.25, -1.0]))
    x = torch.tensor([[0.0, 255.0, 7.0], [255.0, 0.0, 100.0]])
    assert layer(x).tolist() == [[-764.75, -190.5], [32385.25, -6223.5]]


def test_the_greatest_sums_do_not_overflow() -> None:
    pairs = [[127.0, 0.0], [-127.0, 0.0], [0.0, 127.0], [64.0, 63.0], [-63.0, -64.0], [127.0, -127.0]]
    layer = Int8Linear.of(linear([pair * 512 for pair in pairs], [0.0] * len(pairs)))
    x = torch.full((1, 1024), float(INPUT_STEPS))
    x[0, :2] = 0  # a row's least number stands for its zero
    assert layer(x).tolist() == [[511.0 * INPUT_STEPS * sum(pair) for pair in pairs]]


def test_a_pair_of_weights_never_rounds_to_more_than_fits() -> None:
    weight = torch.randn(2_000, 64)
    step = weight_steps(weight)
    whole = (weight / step[:, None]).round().view(len(weight), -1, 2)
    sums = torch.maximum(whole.clamp(min=0).sum(2), -whole.clamp(max=0).sum(2))
    assert 126 < sums.max() <= 128  # times 255 just fits into 16 bits
    assert whole.abs().max() <= 127
    assert (weight.abs().amax(1) / step).mean() > 1.25 * 64, "hardly finer than if each weight could meet one as great"


@pytest.mark.parametrize(("inputs", "outputs"), [(384, 1152), (96, 7), (5, 33), (1, 1)])
def test_the_error_is_half_a_step_of_each_number(inputs: int, outputs: int) -> None:
    exact = random_linear(inputs, outputs)
    x = torch.randn(50, inputs) * torch.rand(50, 1) * 10 + torch.randn(50, 1)
    layer = Int8Linear.of(exact)
    weight_step = weight_steps(exact.weight)
    input_step = (x.amax(1) - x.amin(1)) / INPUT_STEPS
    rounded = ((exact.weight / weight_step[:, None]).round() * weight_step[:, None]).abs().sum(1)
    bound = input_step[:, None] / 2 * rounded + weight_step / 2 * x.abs().sum(1, keepdim=True)
    error = (layer(x) - exact(x)).abs()
    assert (error <= bound * 1.001 + 1e-4).all()
    assert error.norm() < 0.02 * exact(x).norm()


def test_a_row_is_the_same_alone_and_among_others() -> None:
    layer = Int8Linear.of(random_linear(64, 96))
    x = torch.randn(37, 64) * torch.logspace(-3, 3, 37)[:, None]
    assert torch.equal(layer(x), torch.cat([layer(row[None]) for row in x]))


def test_leading_shapes_are_kept() -> None:
    layer = Int8Linear.of(random_linear(8, 6))
    x = torch.randn(2, 3, 8)
    assert torch.equal(layer(x).view(6, 6), layer(x.view(6, 8)))
    assert layer(x[0, 0]).shape == (6,)
    assert layer(x[:0]).shape == (0, 3, 6)


def test_rows_of_one_value_and_rows_without_numbers() -> None:
    exact = random_linear(16, 4)
    x = torch.stack([torch.zeros(16), torch.full((16,), 3.0), torch.full((16,), torch.nan)])
    found = Int8Linear.of(exact)(x)
    assert torch.equal(found[0], exact.bias)
    torch.testing.assert_close(found[1], exact(x[1]), atol=0.2, rtol=0.05)
    assert found[2].isnan().all()


def test_a_weight_of_zeros_and_a_missing_bias() -> None:
    exact = nn.Linear(4, 2, bias=False)
    exact.weight.data[1] = 0
    found = Int8Linear.of(exact)(torch.randn(3, 4))
    assert (found[:, 1] == 0).all()
    assert (found[:, 0] != 0).all()


def test_it_keeps_about_a_byte_for_each_weight() -> None:
    layer = Int8Linear.of(nn.Linear(384, 1536))
    assert layer.size == 384 * 1536 + 4 * 4 * 1536


def test_vectors_are_near_those_of_float32_and_padding_stays_zero() -> None:
    encoder, (ids, mask) = bert(), sequences()
    exact, found = states(encoder, ids, mask), states(encoder.quantised(), ids, mask)
    assert torch.equal(found[0], exact[0])
    assert not torch.equal(found[1:], exact[1:])
    assert torch.cosine_similarity(found[:, mask], exact[:, mask], dim=-1).min() > 0.99
    assert (found[:, ~mask] == 0).all()


def test_a_sequence_alone_has_the_vectors_that_it_has_among_others_to_the_bit() -> None:
    encoder, (ids, mask) = bert().quantised(), sequences()
    together = states(encoder, ids, mask)
    for row, length in enumerate(LENGTHS):
        alone = states(encoder, ids[row : row + 1, :length], mask[row : row + 1, :length])
        assert torch.equal(alone[:, 0], together[:, row, :length])


def test_what_else_is_wanted_changes_no_bit() -> None:
    encoder, (ids, mask) = bert().quantised(), sequences()
    with torch.no_grad():
        whole = encoder.infer(ids, mask)
        for every in (1, 2, 3):
            wanted = mask & (torch.arange(mask.shape[1]) % every == 0)
            found = encoder.infer(ids, mask, None, None, wanted)
            assert torch.equal(torch.stack(found.layers[:-1]), torch.stack(whole.layers[:-1]))
            assert torch.equal(found.padded(mask)[-1][wanted], whole.padded(mask)[-1][wanted])


def test_what_is_not_quantised_is_shared_and_the_original_stays_as_it_was() -> None:
    encoder, (ids, mask) = bert(), sequences()
    before = states(encoder, ids, mask)
    twin = encoder.quantised()
    own = {id(parameter) for parameter in encoder.parameters()}
    assert {id(parameter) for parameter in twin.parameters()} < own
    assert sum(isinstance(part, Int8Linear) for part in twin.modules()) == 4 * encoder.config.layers
    assert torch.equal(states(encoder, ids, mask), before)
    for again in (twin.quantised(), copy.deepcopy(twin)):
        assert torch.equal(states(again, ids, mask), states(twin, ids, mask))


def test_gradients_are_refused() -> None:
    encoder, (ids, mask) = bert().quantised(), sequences()
    with pytest.raises(ConfigError, match="has no gradients"):
        encoder(ids, mask)
    encoder.requires_grad_(False)
    assert not encoder(ids, mask).layers.requires_grad


@pytest.mark.parametrize(
    "encoder", [Elmo(ElmoConfig(**ELMO_SIZES["tiny"]), 9), Static(StaticConfig(dim=4), 9)], ids=["elmo", "static"]
)
def test_encoders_that_would_not_gain_are_refused(encoder: nn.Module) -> None:
    with pytest.raises(ConfigError, match="int8 is for BERT"):
        encoder.quantised()


def test_it_is_not_saved_nor_does_it_share_a_cache_with_float32(
    pretrained_runs: dict[str, Path], tmp_path: Path
) -> None:
    pretrained = headstart.load(pretrained_runs["bert"]).quantised()
    with pytest.raises(ConfigError, match="cannot be saved"):
        save_run(pretrained, tmp_path / "run", {}, "")
    with pytest.raises(ConfigError, match="cannot be saved"):
        encoder_fingerprint(pretrained.encoder)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def untried_processor() -> Iterator[None]:
    check_processor.cache_clear()
    yield
    check_processor.cache_clear()


@pytest.mark.usefixtures("untried_processor")
def test_a_processor_that_cannot_do_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Tensor) -> Tensor:
        raise NotImplementedError

    monkeypatch.setattr(module, "product", missing)
    with pytest.raises(ConfigError, match="no int8 products for this processor"):
        bert().quantised()
    monkeypatch.setattr(module, "product", lambda *_: torch.tensor([[32767.0, -32768.0]]))
    with pytest.raises(ConfigError, match="overflow"):
        bert().quantised()
