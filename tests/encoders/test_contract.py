"""What every encoder promises, whatever it is made of."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from headstart.encoders.bert import BERT_SIZES, Bert, BertConfig
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.static import Static, StaticConfig

SMALL = {"cell": 64, "projection": 16, "filters": [[1, 8], [2, 8], [3, 16]], "highway": 1}
V = 300
ENCODERS: dict[str, Callable[[], nn.Module]] = {
    "static": lambda: Static(StaticConfig(dim=8), V),
    "elmo": lambda: Elmo(ElmoConfig(**SMALL)),
    "elmo, forward only": lambda: Elmo(ElmoConfig(**SMALL, directions="forward")),
    "bert": lambda: Bert(BertConfig(**BERT_SIZES["tiny"]), V),
}


@pytest.fixture(params=ENCODERS)
def encoder(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return ENCODERS[request.param]()


def ids_for(encoder: nn.Module, B: int, T: int) -> Tensor:
    shape = (B, T, 50) if isinstance(encoder, Elmo) else (B, T)
    return torch.randint(1, 262, shape, generator=torch.Generator().manual_seed(3))


def test_padding_and_neighbours_change_nothing(encoder: nn.Module) -> None:
    encoder.eval()
    ids = ids_for(encoder, 3, 9)
    lengths = torch.tensor([4, 9, 6])
    mask = torch.arange(9) < lengths[:, None]
    together = encoder(ids, mask)
    for b, n in enumerate(lengths.tolist()):
        alone = encoder(ids[b : b + 1, :n], mask[b : b + 1, :n])
        torch.testing.assert_close(alone.layers[:, 0], together.layers[:, b, :n], atol=1e-5, rtol=1e-5)


def test_every_parameter_gets_a_gradient(encoder: nn.Module) -> None:
    R = encoder(ids_for(encoder, 2, 5), torch.ones(2, 5, dtype=torch.bool))
    (R.layers * torch.randn_like(R.layers)).sum().backward()
    without = {name for name, p in encoder.named_parameters() if p.grad is None or not p.grad.any()}
    assert without <= {"pooler.weight", "pooler.bias"}  # the pooler sits above the representations


def test_evaluation_is_repeatable_and_training_is_by_seed(encoder: nn.Module) -> None:
    ids, mask = ids_for(encoder, 2, 5), torch.ones(2, 5, dtype=torch.bool)
    torch.manual_seed(1)
    first = encoder.train()(ids, mask).layers
    torch.manual_seed(1)
    assert torch.equal(encoder(ids, mask).layers, first)
    encoder.eval()
    assert torch.equal(encoder(ids, mask).layers, encoder(ids, mask).layers)


def test_only_the_layers_that_are_wanted_are_given(encoder: nn.Module) -> None:
    encoder.eval()
    ids, mask = ids_for(encoder, 2, 5), torch.arange(5) < torch.tensor([[3], [5]])
    whole = encoder(ids, mask).layers
    for wanted in ([0], [-1], [len(whole) - 1, 0]):
        torch.testing.assert_close(encoder(ids, mask, None, wanted).layers, whole[wanted], atol=1e-6, rtol=1e-5)


def test_tokens_in_use_are_those_of_the_padded_batch(encoder: nn.Module) -> None:
    encoder.eval()
    ids, mask = ids_for(encoder, 4, 40), torch.arange(40) < torch.tensor([[3], [40], [1], [17]])
    whole = encoder(ids, mask).layers
    with torch.no_grad():
        tokens = encoder.infer(ids, mask)
        top = encoder.infer(ids, mask, None, [-1])
    torch.testing.assert_close(torch.stack(tokens.padded(mask)), whole, atol=1e-5, rtol=1e-5)
    places = torch.tensor([[0, 2, -1], [39, -1, 1], [-1, -1, -1], [16, 16, 0]])
    expected = torch.stack([whole[-1, b, t] for b, row in enumerate(places) for t in row if t >= 0])
    torch.testing.assert_close(top.at(places), expected[None], atol=1e-5, rtol=1e-5)


def test_wanted_tokens_are_the_same_whatever_is_left_out(encoder: nn.Module) -> None:
    encoder.eval()
    ids, mask = ids_for(encoder, 4, 40), torch.arange(40) < torch.tensor([[3], [40], [1], [17]])
    places = torch.tensor([[1, -1], [38, 2], [-1, -1], [15, 3]])
    wanted = torch.zeros_like(mask)
    wanted[0, 1] = wanted[1, [2, 38]] = wanted[3, [3, 15]] = True
    with torch.no_grad():
        whole = encoder.infer(ids, mask).at(places)
        for some in (wanted, mask):
            found = encoder.infer(ids, mask, None, None, some).at(places)
            torch.testing.assert_close(found, whole, atol=1e-5, rtol=1e-5)


def test_a_batch_of_which_nothing_is_wanted_has_no_words(encoder: nn.Module) -> None:
    encoder.eval()
    ids, mask = ids_for(encoder, 2, 5), torch.arange(5) < torch.tensor([[3], [5]])
    with torch.no_grad():
        tokens = encoder.infer(ids, mask, None, None, torch.zeros_like(mask))
    assert tokens.at(torch.full((2, 1), -1)).shape[1] == 0
