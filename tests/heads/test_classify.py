import pytest
import torch
from torch import Tensor, nn

from headstart.config import resolve
from headstart.errors import ConfigError, DataError
from headstart.heads.classify import ClassifyHead, ClassifyHeadConfig
from headstart.heads.pool import POOLS, build_pool
from headstart.heads.recurrent import CELLS

D, WIDTH, C = 6, 4, 3
LENGTHS = [5, 2, 7, 1]
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]


def network(joined: int = 0, **settings: object) -> ClassifyHead:
    torch.manual_seed(0)
    made = ClassifyHead(D, joined, C, ClassifyHeadConfig(**{"width": WIDTH, **settings})).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def vectors(B: int = 4, W: int = 7, width: int = D, seed: int = 1) -> Tensor:
    return torch.randn(B, W, width, generator=torch.Generator().manual_seed(seed))


def pooled(kind: str, x: list[list[float]], mask: list[bool], backward: int = 0) -> list[float]:
    real = torch.tensor([mask])
    pool = POOLS[kind](len(x[0]), backward)
    result: list[float] = pool(torch.tensor([x]) * real[..., None], real)[0].tolist()
    return result


def test_several_pools_stand_side_by_side() -> None:
    net, x = network(cell="gru", pool="last+max+mean"), vectors()
    words = net.words(x, MASK, None)
    single = [build_pool(name, net.out_width, net.backward_width)(words, MASK) for name in ("last", "max", "mean")]
    torch.testing.assert_close(net.pool(words, MASK), torch.cat(single, dim=1))
    assert net.output.in_features == 3 * net.out_width


@pytest.mark.parametrize("pool", ["mex", "max+", "max+max", "first+max"])
def test_pools_that_cannot_be_joined_are_refused(pool: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.pool"):
        resolve(ClassifyHeadConfig, {"pool": pool})


def test_pools_by_hand() -> None:
    x, mask = [[1.0, -5.0], [3.0, -1.0], [9.0, 9.0]], [True, True, False]
    assert pooled("mean", x, mask) == [2.0, -3.0]
    assert pooled("max", x, mask) == [3.0, -1.0]
    assert pooled("first", x, mask) == [1.0, -5.0]
    assert pooled("last", x, mask) == [3.0, -1.0]
    assert pooled("last", x, mask, backward=1) == [3.0, -5.0]
    assert pooled("attention", x, mask) == [2.0, -3.0]  # its query starts at zero


def test_attention_gives_each_word_the_softmax_of_its_product_with_the_query() -> None:
    pool = POOLS["attention"](1, 0)
    with torch.no_grad():
        pool.query.fill_(1.0)
    x = torch.tensor([[[0.0], [3.0]]]).log1p()  # e^x is 1 and 4
    assert pool(x, torch.ones(1, 2, dtype=torch.bool)).item() == pytest.approx(0.8 * x[0, 1].item())


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("directions", ["both", "forward"])
@pytest.mark.parametrize("cell", CELLS)
def test_last_is_torchs_own_final_state_of_the_text_alone(cell: str, directions: str, layers: int) -> None:
    net = network(cell=cell, directions=directions, layers=layers, pool="last")
    x = vectors()
    logits = net(x, MASK)
    assert isinstance(net.recurrent, nn.RNNBase)
    for b, n in enumerate(LENGTHS):
        _, final = net.recurrent(x[b : b + 1, :n])
        states = final[0] if cell == "lstm" else final  # (layers * directions, 1, width)
        text = states.view(layers, -1, WIDTH)[-1].flatten()
        torch.testing.assert_close(logits[b], net.output(text), rtol=0, atol=1e-6)


@pytest.mark.parametrize("joined", [0, 3])
@pytest.mark.parametrize("pool", [*POOLS, "last+max+mean"])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_padding_and_neighbours_change_nothing(cell: str, pool: str, joined: int) -> None:
    net, x = network(joined, cell=cell, pool=pool), vectors()
    beside = vectors(width=joined, seed=2) if joined else None
    together = net(x, MASK, beside)
    other = net(x.masked_fill(~MASK[..., None], 50.0), MASK, beside)
    torch.testing.assert_close(other, together, rtol=0, atol=1e-6)
    for b, n in enumerate(LENGTHS):
        alone = net(x[b : b + 1, :n], MASK[b : b + 1, :n], None if beside is None else beside[b : b + 1, :n])
        torch.testing.assert_close(alone[0], together[b], rtol=0, atol=1e-6)


@pytest.mark.parametrize("pool", [*POOLS, "last+max+mean"])
@pytest.mark.parametrize("cell", [*CELLS, "none"])
def test_a_text_without_words_is_a_vector_of_zeros(cell: str, pool: str) -> None:
    net = network(cell=cell, pool=pool)
    mask = MASK.clone()
    mask[1] = False
    x = vectors().requires_grad_()
    logits = net(x, mask)
    torch.testing.assert_close(logits[1], net.output.bias)
    logits.sum().backward()
    for tensor in (x, *net.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
    assert not x.grad[1].any()


def test_what_is_joined_stands_beside_the_states() -> None:
    net, x, beside = network(2, cell="gru", pool="mean"), vectors(), vectors(width=2, seed=2)
    assert net.recurrent is not None
    expected = torch.stack(
        [
            torch.cat([beside[b, :n], net.recurrent(x[b : b + 1, :n])[0][0]], dim=1).mean(dim=0)
            for b, n in enumerate(LENGTHS)
        ]
    )
    torch.testing.assert_close(net(x, MASK, beside), net.output(expected), rtol=0, atol=1e-6)


def test_an_encoders_own_pooling_takes_the_place_of_the_pool() -> None:
    net, x = network(cell="none", pool="first"), vectors()
    logits = net(x, MASK, pooled=lambda h: 2 * h[:, 0])
    torch.testing.assert_close(logits, net.output(2 * x[:, 0]))


def test_dropout_meets_input_and_output_in_training_only() -> None:
    ones, mask = torch.ones(2, 5, D), torch.ones(2, 5, dtype=torch.bool)
    for cell in ("lstm", "none"):
        net = network(cell=cell, dropout=0.5)
        assert torch.equal(net(ones, mask), net(ones, mask))
        net.train()
        assert not torch.equal(net(ones, mask), net(ones, mask))
    net = network(cell="lstm", dropout=0.5)
    net.dropout.eval()
    net.recurrent.train()
    assert torch.equal(net(ones, mask), net(ones, mask))  # one layer has nothing between layers to drop


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("pool", [*POOLS, "last+max+mean"])
@pytest.mark.parametrize("cell", CELLS)
def test_unused_parameters_are_those_without_a_gradient(cell: str, pool: str, layers: int) -> None:
    net = network(cell=cell, pool=pool, layers=layers)
    (net(vectors(), MASK) ** 2).sum().backward()
    unused = {id(parameter) for parameter in net.unused_parameters()}
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.any()) != (id(parameter) in unused), name


def test_real_words_after_padding_are_refused() -> None:
    with pytest.raises(DataError, match="pad texts at their end only"):
        network()(vectors(1, 3), torch.tensor([[True, False, True]]))


def test_the_first_word_read_forward_only_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"network\.pool 'first' would see one word only"):
        resolve(ClassifyHeadConfig, {"pool": "first", "directions": "forward"})
    resolve(ClassifyHeadConfig, {"pool": "first", "directions": "forward", "cell": "none"})
