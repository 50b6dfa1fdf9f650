import copy

import pytest
import torch
from torch import Tensor

from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.kernels import word_cache
from headstart.text.characters import character_table


def spelled(*words: str) -> torch.Tensor:
    return torch.from_numpy(character_table(words)).long()[None]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> CharacterNetwork:
    """At inference; `computed` records how many words each call computes."""
    torch.manual_seed(0)
    network = CharacterNetwork([[1, 4], [3, 8]], char_width=5, highway=1, projection=6).eval().requires_grad_(False)
    network.computed = []
    words = network.words

    def counting(characters: torch.Tensor) -> torch.Tensor:
        network.computed.append(len(characters))
        return words(characters)

    monkeypatch.setattr(network, "words", counting)
    return network


def kept(network: CharacterNetwork, characters: Tensor) -> Tensor:
    """The words' vectors, with the cache in use. characters: (B, T, C)."""
    vectors, numbers = network.distinct(characters.flatten(0, -2), keep=True)
    return vectors[numbers].view(*characters.shape[:-1], -1)


def fresh(network: CharacterNetwork, characters: torch.Tensor) -> torch.Tensor:
    return CharacterNetwork.words(network, characters.flatten(0, -2)).view(*characters.shape[:-1], -1)


def test_a_word_is_computed_once(network: CharacterNetwork) -> None:
    first, second = spelled("a", "cat", "a"), spelled("the", "cat", "sat")
    torch.testing.assert_close(kept(network, first), fresh(network, first))
    assert sum(network.computed) == 2
    torch.testing.assert_close(kept(network, second), fresh(network, second))
    assert sum(network.computed) == 4
    assert torch.equal(kept(network, second), kept(network, second))
    assert sum(network.computed) == 4


def test_other_weights_make_it_forget(network: CharacterNetwork) -> None:
    text = spelled("a", "cat")
    before = kept(network, text)
    with torch.no_grad():
        network.projection.bias += 1
    torch.testing.assert_close(kept(network, text), before + 1)
    network.load_state_dict({name: torch.zeros_like(value) for name, value in network.state_dict().items()})
    assert not kept(network, text).any()


def test_a_step_of_training_makes_it_forget(network: CharacterNetwork) -> None:
    text = spelled("a", "cat")
    before = kept(network, text)
    optimizer = torch.optim.AdamW(network.requires_grad_(True).parameters(), lr=0.1, fused=True)
    kept(network, text).sum().backward()
    optimizer.step()
    with torch.no_grad():
        after = kept(network, text)
    torch.testing.assert_close(after, fresh(network, text).detach())
    assert not torch.allclose(after, before)


def test_it_forgets_when_told(network: CharacterNetwork) -> None:
    kept(network, spelled("a"))
    network.forget()
    kept(network, spelled("a"))
    assert sum(network.computed) == 2


def test_nothing_is_taken_from_it_while_the_network_learns(network: CharacterNetwork) -> None:
    kept(network, spelled("a"))
    network.train().requires_grad_(True)
    assert kept(network, spelled("a")).requires_grad
    assert sum(network.computed) == 2


def test_it_stays_within_its_bounds(network: CharacterNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "FIRST_ROWS", 4)
    monkeypatch.setattr(word_cache, "MOST_BYTES", 10 * (2 * 50 + 4 * 6))
    for start in range(0, 60, 3):
        text = spelled(*(f"word{i}" for i in range(start, start + 3)), "the")
        torch.testing.assert_close(kept(network, text), fresh(network, text))
        assert len(network.cache.place_of) <= len(network.cache.vectors) <= 10
    many = spelled(*(f"other{i}" for i in range(25)))
    torch.testing.assert_close(kept(network, many), fresh(network, many))


def test_words_with_one_hash_are_told_apart(network: CharacterNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "HASH_BASE", 0)
    for word in ("a", "cat", "a", "the"):
        text = spelled(word)
        torch.testing.assert_close(kept(network, text), fresh(network, text))


def test_without_being_asked_it_keeps_nothing_and_takes_nothing(network: CharacterNetwork) -> None:
    network(spelled("a"))
    assert not network.cache.place_of
    kept(network, spelled("a"))
    network(spelled("a"))
    assert sum(network.computed) == 3


def test_words_of_inference_mode_are_known_and_joined_by_others_outside_of_it(network: CharacterNetwork) -> None:
    first, second = spelled("a", "cat"), spelled("the", "cat")
    with torch.inference_mode():
        kept(network, first)
    torch.testing.assert_close(kept(network, second), fresh(network, second))
    assert sum(network.computed) == 3
    with torch.inference_mode():
        torch.testing.assert_close(kept(network, second), fresh(network, second))
    assert sum(network.computed) == 3


def test_a_copy_of_the_network_starts_with_none(network: CharacterNetwork) -> None:
    kept(network, spelled("a"))
    assert not copy.deepcopy(network.cache).place_of
