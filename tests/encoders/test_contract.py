"""What every registered encoder promises, whatever it is made of."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from pydantic import BaseModel
from torch import Tensor

from headstart.config import resolve
from headstart.encoders.base import Encoder
from headstart.encoders.elmo import Elmo
from headstart.encoders.registry import ENCODERS, build_encoder
from headstart.errors import ConfigError
from headstart.text.vocabulary import UNKNOWN_ID

CASES: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in ENCODERS),
    ("elmo", {"directions": "forward"}),
    ("elmo", {"tokens": "words"}),
    ("elmo", {"tokens": "both"}),
]
MakeIds = Callable[..., Tensor]


@pytest.fixture(params=CASES, ids=lambda case: " ".join([case[0], *case[1].values()]))
def encoder(request: pytest.FixtureRequest, tiny_encoder: Callable[..., Encoder]) -> Encoder:
    kind, settings = request.param
    return tiny_encoder(kind, **settings)


@pytest.fixture
def ids_for(encoder: Encoder, tiny_ids: MakeIds) -> MakeIds:
    def draw(B: int, T: int) -> Tensor:
        ids = tiny_ids(encoder.kind, B, T)
        if not isinstance(encoder, Elmo) or encoder.config.tokens == "characters":
            return ids
        numbers = ids[..., 0].clone()
        numbers[:, 1::2] = UNKNOWN_ID  # every second word is outside the table
        return numbers if encoder.config.tokens == "words" else torch.cat([numbers[..., None], ids], dim=-1)

    return draw


@pytest.mark.parametrize("kind", ENCODERS)
def test_it_says_what_it_is(kind: str) -> None:
    encoder = ENCODERS[kind]
    assert encoder.kind == kind
    assert encoder.title
    assert encoder.description.endswith(".")
    assert encoder.perplexity_note
    assert issubclass(encoder.Config, BaseModel)
    for size in encoder.sizes.values():
        resolve(encoder.Config, size)


@pytest.mark.parametrize("kind", ENCODERS)
def test_it_is_built_from_its_settings_without_touching_torchs_generator(
    kind: str, tiny_encoder: Callable[..., Encoder]
) -> None:
    settings = tiny_encoder(kind).config.model_dump()
    before = torch.get_rng_state()
    assert build_encoder(kind, settings, 30).config == ENCODERS[kind].Config(**settings)
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ConfigError, match="Unknown key 'colour'"):
        build_encoder(kind, {**settings, "colour": 1}, 30)


def test_its_layers_have_the_shape_that_it_names(encoder: Encoder, ids_for: MakeIds) -> None:
    R = encoder(ids_for(2, 5), torch.ones(2, 5, dtype=torch.bool))
    K, D = encoder.shape
    assert R.layers.shape == (K, 2, 5, D)
    assert encoder.activation_floats(2, 5) > 0


def test_layer_groups_hold_every_parameter_once(encoder: Encoder) -> None:
    grouped = [id(parameter) for group in encoder.layer_groups() for parameter in group]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {id(parameter) for parameter in encoder.parameters()}


def test_only_an_encoder_that_pools_has_a_pooled_vector(encoder: Encoder) -> None:
    top = torch.randn(2, 5, encoder.shape[1])
    if encoder.pools:
        assert encoder.pooled(top).shape == (2, encoder.shape[1])
        assert encoder.pooler_parameters()
    else:
        assert encoder.pooler_parameters() == []
        with pytest.raises(ConfigError, match="no pooled vector"):
            encoder.pooled(top)


def test_its_tensors_are_found_again_among_those_of_a_run(encoder: Encoder) -> None:
    own = encoder.state_dict()
    saved = {f"{encoder.run_prefix}{name}": tensor for name, tensor in own.items()}
    found = encoder.weights_in_run({**saved, "head.bias": torch.zeros(1), "contexts": torch.zeros(1)})
    assert found.keys() == own.keys()
    assert all(found[name] is saved[f"{encoder.run_prefix}{name}"] for name in own)


def test_padding_and_neighbours_change_nothing(encoder: Encoder, ids_for: MakeIds) -> None:
    encoder.eval()
    ids = ids_for(3, 9)
    lengths = torch.tensor([4, 9, 6])
    mask = torch.arange(9) < lengths[:, None]
    together = encoder(ids, mask)
    for b, n in enumerate(lengths.tolist()):
        alone = encoder(ids[b : b + 1, :n], mask[b : b + 1, :n])
        torch.testing.assert_close(alone.layers[:, 0], together.layers[:, b, :n], atol=1e-5, rtol=1e-5)


def test_every_parameter_gets_a_gradient(encoder: Encoder, ids_for: MakeIds) -> None:
    R = encoder(ids_for(2, 5), torch.ones(2, 5, dtype=torch.bool))
    (R.layers * torch.randn_like(R.layers)).sum().backward()
    without = {name for name, p in encoder.named_parameters() if p.grad is None or not p.grad.any()}
    pooler = {id(parameter) for parameter in encoder.pooler_parameters()}  # it sits above the representations
    assert without == {name for name, parameter in encoder.named_parameters() if id(parameter) in pooler}


def test_evaluation_is_repeatable_and_training_is_by_seed(encoder: Encoder, ids_for: MakeIds) -> None:
    ids, mask = ids_for(2, 5), torch.ones(2, 5, dtype=torch.bool)
    torch.manual_seed(1)
    first = encoder.train()(ids, mask).layers
    torch.manual_seed(1)
    assert torch.equal(encoder(ids, mask).layers, first)
    encoder.eval()
    assert torch.equal(encoder(ids, mask).layers, encoder(ids, mask).layers)


def test_only_the_layers_that_are_wanted_are_given(encoder: Encoder, ids_for: MakeIds) -> None:
    encoder.eval()
    ids, mask = ids_for(2, 5), torch.arange(5) < torch.tensor([[3], [5]])
    whole = encoder(ids, mask).layers
    for wanted in ([0], [-1], [len(whole) - 1, 0]):
        torch.testing.assert_close(encoder(ids, mask, None, wanted).layers, whole[wanted], atol=1e-6, rtol=1e-5)


def test_inference_gives_the_vectors_of_the_padded_batch(encoder: Encoder, ids_for: MakeIds) -> None:
    encoder.eval()
    ids, mask = ids_for(4, 40), torch.arange(40) < torch.tensor([[3], [40], [1], [17]])
    whole = encoder(ids, mask).layers
    with torch.no_grad():
        tokens = encoder.infer(ids, mask)
        top = encoder.infer(ids, mask, None, [-1])
    torch.testing.assert_close(torch.stack(tokens.padded(mask)), whole, atol=1e-5, rtol=1e-5)
    places = torch.tensor([[0, 2, -1], [39, -1, 1], [-1, -1, -1], [16, 16, 0]])
    expected = torch.stack([whole[-1, b, t] for b, row in enumerate(places) for t in row if t >= 0])
    torch.testing.assert_close(top.at(places), expected[None], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_inference_mode_leaves_behind_serves_outside_of_it(
    threads: int, encoder: Encoder, ids_for: MakeIds, with_threads: Callable[[int], AbstractContextManager[None]]
) -> None:
    encoder.eval()
    ids, mask = ids_for(4, 6), torch.arange(6) < torch.tensor([6, 3, 5, 6])[:, None]
    with with_threads(threads):
        with torch.inference_mode():
            encoder.infer(ids.roll(1, dims=-1), mask)  # other words, in buffers of the same size
        with torch.no_grad():
            found = encoder.infer(ids, mask)
        wanted = encoder(ids, mask).layers.detach()
        encoder(ids, mask).layers.sum().backward()
    torch.testing.assert_close(torch.stack(found.padded(mask)), wanted, rtol=1e-5, atol=1e-6)


def test_wanted_tokens_are_the_same_whatever_is_left_out(encoder: Encoder, ids_for: MakeIds) -> None:
    encoder.eval()
    ids, mask = ids_for(4, 40), torch.arange(40) < torch.tensor([[3], [40], [1], [17]])
    places = torch.tensor([[1, -1], [38, 2], [-1, -1], [15, 3]])
    wanted = torch.zeros_like(mask)
    wanted[0, 1] = wanted[1, [2, 38]] = wanted[3, [3, 15]] = True
    with torch.no_grad():
        whole = encoder.infer(ids, mask).at(places)
        for some in (wanted, mask):
            found = encoder.infer(ids, mask, None, None, some).at(places)
            torch.testing.assert_close(found, whole, atol=1e-5, rtol=1e-5)


def test_a_batch_of_which_nothing_is_wanted_has_no_words(encoder: Encoder, ids_for: MakeIds) -> None:
    encoder.eval()
    ids, mask = ids_for(2, 5), torch.arange(5) < torch.tensor([[3], [5]])
    with torch.no_grad():
        tokens = encoder.infer(ids, mask, None, None, torch.zeros_like(mask))
    assert tokens.at(torch.full((2, 1), -1)).shape[1] == 0
