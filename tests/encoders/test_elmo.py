import pytest
import torch
from torch import Tensor

from headstart.config import resolve
from headstart.encoders.elmo import ELMO_SIZES, Elmo, ElmoConfig
from headstart.errors import ConfigError

SMALL = {"cell": 64, "projection": 16, "filters": [[1, 8], [2, 8], [3, 16]], "highway": 1}


def elmo(**changes: object) -> Elmo:
    torch.manual_seed(0)
    return Elmo(ElmoConfig(**{**SMALL, **changes}))


def characters(B: int, T: int) -> Tensor:
    return torch.randint(1, 262, (B, T, 50), generator=torch.Generator().manual_seed(1))


def test_layers_share_one_width_and_the_token_layer_is_repeated() -> None:
    R = elmo()(characters(2, 5), torch.ones(2, 5, dtype=torch.bool))
    assert R.layers.shape == (3, 2, 5, 32)
    assert torch.equal(R.layers[0, ..., :16], R.layers[0, ..., 16:])
    forward_only = elmo(directions="forward")(characters(2, 5), torch.ones(2, 5, dtype=torch.bool))
    assert forward_only.layers.shape == (3, 2, 5, 16)


@pytest.mark.parametrize("changed", [0, 3, 6])
def test_no_direction_sees_what_it_has_not_read(changed: int) -> None:
    encoder, ids, mask = elmo().eval(), characters(1, 7), torch.ones(1, 7, dtype=torch.bool)
    other = ids.clone()
    other[0, changed] = other[0, changed].flip(0)
    before, after = encoder(ids, mask).layers[1:], encoder(other, mask).layers[1:]
    assert torch.equal(before[:, 0, :changed, :16], after[:, 0, :changed, :16])
    assert torch.equal(before[:, 0, changed + 1 :, 16:], after[:, 0, changed + 1 :, 16:])
    assert (before[:, 0, changed:, :16] != after[:, 0, changed:, :16]).any(dim=-1).all()
    assert (before[:, 0, : changed + 1, 16:] != after[:, 0, : changed + 1, 16:]).any(dim=-1).all()


@pytest.mark.parametrize("directions", ["both", "forward"])
def test_sentences_with_shared_prefixes_or_suffixes_have_the_vectors_of_the_training_path(directions: str) -> None:
    network = elmo(directions=directions, residual=True).eval()
    words = characters(1, 6)[0]
    sentences = torch.tensor([[0, 1, 2, 5], [0, 1, 2, 5], [0, 1, 5, 0], [0, 3, 2, 5], [4, 5, 0, 0]])
    mask = torch.arange(4) < torch.tensor([[4], [4], [3], [4], [2]])
    ids = words[sentences]
    with torch.no_grad():
        found = network.infer(ids, mask).padded(mask)
        inner = torch.zeros_like(mask)
        inner[:, 1] = inner[0, 2] = True
        places = torch.tensor([[1, 2], [1, -1], [1, -1], [1, -1], [1, -1]])
        wanted = network.infer(ids, mask, wanted=inner).at(places)
    plain = torch.stack(network.hidden_states(ids, mask))
    torch.testing.assert_close(torch.stack(found), plain, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(wanted, plain[:, [0, 0, 1, 2, 3, 4], [1, 2, 1, 1, 1, 1]], atol=1e-5, rtol=1e-5)


def test_the_residual_adds_the_first_layer_to_the_second() -> None:
    ids, mask = characters(2, 4), torch.ones(2, 4, dtype=torch.bool)
    with_residual, without = elmo().eval()(ids, mask), elmo(residual=False).eval()(ids, mask)
    torch.testing.assert_close(with_residual.layers[2], without.layers[2] + without.layers[1])
    assert torch.equal(with_residual.layers[1], without.layers[1])


def test_every_size_is_a_configuration_and_original_is_the_published_one() -> None:
    configs = {name: resolve(ElmoConfig, size) for name, size in ELMO_SIZES.items()}
    original = configs["original"]
    assert (original.cell, original.projection, original.highway, original.layers) == (4096, 512, 2, 2)
    assert sum(count for _, count in original.filters) == 2048


@pytest.mark.parametrize("filters", [[], [[3]], [[0, 4]], [[51, 4]], [[2, 0]]])
def test_filters_that_cannot_be_are_refused(filters: list[list[int]]) -> None:
    with pytest.raises(ConfigError, match=r"encoder\.filters must be"):
        resolve(ElmoConfig, {"cell": 4, "projection": 2, "filters": filters})
