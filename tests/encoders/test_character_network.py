import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headstart.encoders import character_network
from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.kernels import word_cache
from headstart.encoders.kernels.spelling import distinct_rows, lengths_of, trim

FILTERS = [[1, 4], [2, 5], [3, 6]]


def spell(*words: str, length: int = 20) -> Tensor:
    """ELMo's ids: word start 259, bytes + 1, word end 260, padding 261."""
    rows = [[259, *(byte + 1 for byte in word.encode()), 260] for word in words]
    return torch.tensor([row + [261] * (length - len(row)) for row in rows])


def network(highway: int = 2) -> CharacterNetwork:
    torch.manual_seed(0)
    made = CharacterNetwork(FILTERS, char_width=3, highway=highway, projection=4).double()
    with torch.no_grad():
        for weight in made.filters:
            weight.mul_(20)
        made.filter_bias.uniform_(-0.5, 0.5)
    return made


def published(net: CharacterNetwork, characters: Tensor) -> Tensor:
    """The network as the paper draws it, over all characters of every word. (N, C) -> (N, P)."""
    embedded = F.embedding(characters, net.characters, padding_idx=0).transpose(1, 2)
    pooled = [F.conv1d(embedded, weight.permute(2, 1, 0)).amax(dim=2) for weight in net.filters]
    x = torch.relu(torch.cat(pooled, dim=1) + net.filter_bias)
    for highway in net.highways:
        transform, gate = highway.transform_and_gate(x).chunk(2, dim=1)
        x = gate.sigmoid() * transform.relu() + (1 - gate.sigmoid()) * x
    return net.projection(x)


def test_equals_the_published_network_with_gradients_when_words_repeat() -> None:
    net = network()
    words = spell("the", "cat", "saw", "the", "mouse", "a", "cat", "eighteen-letters-x")
    characters = torch.cat([words, torch.zeros_like(words[:2])]).view(2, 5, -1)
    ours, theirs = net(characters), published(net, characters.flatten(0, 1)).view(2, 5, -1)
    torch.testing.assert_close(ours, theirs)
    weights = torch.randn_like(ours)
    parameters = list(net.parameters())
    our_gradients = torch.autograd.grad((ours * weights).sum(), parameters)
    their_gradients = torch.autograd.grad((theirs * weights).sum(), parameters)
    for a, b in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("word", ["a", "horse", "seventeen-letter", "eighteen-letters-x"])
def test_trimming_changes_no_bit(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, characters = network(), spell(word, "is")
    trimmed = net.words(characters)
    # As if every word filled its row, in the same order: nothing is trimmed, and no window is left out.
    monkeypatch.setattr(character_network, "lengths_of", lambda rows: rows.shape[1] + lengths_of(rows))
    assert torch.equal(net.words(characters), trimmed)


def test_trim_keeps_one_window_of_padding() -> None:
    rows = [spell("ab", "a"), spell("a" * 18), torch.zeros(2, 20, dtype=torch.int64)]
    assert [lengths_of(characters).tolist() for characters in rows] == [[4, 3], [20], [0, 0]]
    assert [trim(characters, lengths_of(characters), widest=3).shape[1] for characters in rows] == [4 + 3, 20, 3]


def test_distinct_rows_come_as_they_first_appear_and_give_each_row_back() -> None:
    rows = spell("b", "a", "b", "c", "a")
    distinct, inverse = distinct_rows(rows)
    assert torch.equal(distinct, spell("b", "a", "c"))
    assert inverse.tolist() == [0, 1, 0, 2, 1]
    assert torch.equal(distinct[inverse], rows)


def test_colliding_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "HASH_BASE", 0)
    rows = spell("b", "a", "b")
    distinct, inverse = distinct_rows(rows)
    assert len(distinct) == 2
    assert torch.equal(distinct[inverse], rows)


def test_highways_start_by_carrying() -> None:
    net = network(highway=1)
    x = torch.rand(5, 15, dtype=torch.float64)
    moved = (net.highways[0](x) - x).norm() / x.norm()
    assert moved < 0.4


def test_batch_padding_stays_zero() -> None:
    net = network()
    net(torch.cat([spell("a"), torch.zeros(1, 20, dtype=torch.int64)])[None]).sum().backward()
    assert not net.characters[0].any()
    assert not net.characters.grad[0].any()
