"""ELMo's tables of words: known words have their rows, other words are <UNK> or spelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.batches.rows import collate, text_row
from headstart.encoders.character_network import CharacterNetwork
from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.word_table import SpelledWords, WordTable
from headstart.errors import ConfigError
from headstart.text.characters import character_table
from headstart.text.tokenizer import WordTokenizer
from headstart.text.vocabulary import Vocabulary, WordCounter

SHAPE: dict[str, Any] = {"cell": 6, "projection": 4, "filters": [[1, 4], [2, 4]], "char_width": 3, "highway": 1}
SENTENCE = "the cat saw a quokka and the quokka saw a wombat"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    counter = WordCounter()
    counter.add({"the": 5, "a": 4, "cat": 3, "saw": 2, "and": 1})
    return counter.vocabulary(None, 1)


@pytest.fixture
def elmo(vocabulary: Vocabulary) -> Callable[[str], Elmo]:
    def build(tokens: str) -> Elmo:
        torch.manual_seed(0)
        return Elmo(ElmoConfig(**SHAPE, tokens=tokens), len(vocabulary)).eval()  # type: ignore[arg-type]

    return build


def first_layer(encoder: Elmo, vocabulary: Vocabulary, sentence: str = SENTENCE) -> Tensor:
    """R_0 of every word in one direction, (words, P)."""
    row = text_row(encoder, WordTokenizer(vocabulary), sentence)
    batch = collate([row])
    with torch.no_grad():
        return encoder(batch.ids, batch.mask).at_words(batch.word_starts).layers[0, 0, :, :4]


def test_a_word_of_the_table_has_its_row_and_any_other_that_of_unknown(
    elmo: Callable[[str], Elmo], vocabulary: Vocabulary
) -> None:
    encoder = elmo("words")
    assert isinstance(encoder.tokens, WordTable)
    expected = encoder.tokens.weight[[vocabulary.id(word) for word in SENTENCE.split()]]
    assert torch.equal(first_layer(encoder, vocabulary), expected)


def test_a_word_outside_the_table_is_spelled(elmo: Callable[[str], Elmo], vocabulary: Vocabulary) -> None:
    encoder = elmo("both")
    tokens = encoder.tokens
    assert isinstance(tokens, SpelledWords)
    found = first_layer(encoder, vocabulary)
    words = SENTENCE.split()
    for word, vector in zip(words, found, strict=True):
        if word in vocabulary.index:
            assert torch.equal(vector, tokens.weight[vocabulary.id(word)])
        else:
            spelled = tokens.characters.words(torch.from_numpy(character_table([word])))[0]
            torch.testing.assert_close(vector, spelled, rtol=0, atol=1e-6)
    assert torch.equal(found[words.index("quokka")], found[len(words) - 4])


@pytest.mark.parametrize("tokens", ["words", "both"])
def test_inference_gives_what_training_gives(tokens: str, elmo: Callable[[str], Elmo], vocabulary: Vocabulary) -> None:
    encoder, tokenizer = elmo(tokens), WordTokenizer(vocabulary)
    batch = collate([text_row(encoder, tokenizer, text) for text in (SENTENCE, "a wombat", "the cat", "quokka")])
    with torch.no_grad():
        trained = encoder.hidden_states(batch.ids, batch.mask)
        used = encoder.infer(batch.ids, batch.mask).padded(batch.mask)
    for ours, theirs in zip(used, trained, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def test_a_table_of_spelled_vectors_is_an_elmo_of_characters(
    elmo: Callable[[str], Elmo], vocabulary: Vocabulary
) -> None:
    """The published ELMo, with every vector computed beforehand, and the same with a table of them."""
    table, published = elmo("both"), elmo("characters")
    tokens = table.tokens
    assert isinstance(tokens, SpelledWords)
    assert isinstance(published.tokens, CharacterNetwork)
    tokens.characters.load_state_dict(published.tokens.state_dict())
    table.layers.load_state_dict(published.layers.state_dict())
    with torch.no_grad():
        tokens.weight.copy_(published.tokens.words(torch.from_numpy(character_table(vocabulary.words))))
        tokenizer = WordTokenizer(vocabulary)
        a, b = (collate([text_row(encoder, tokenizer, SENTENCE)]) for encoder in (table, published))
        torch.testing.assert_close(table(a.ids, a.mask).layers, published(b.ids, b.mask).layers, rtol=0, atol=1e-5)


def test_known_words_teach_their_rows_and_spelled_ones_the_network(
    elmo: Callable[[str], Elmo], vocabulary: Vocabulary
) -> None:
    encoder = elmo("both")
    tokens = encoder.tokens
    assert isinstance(tokens, SpelledWords)
    row = text_row(encoder, WordTokenizer(vocabulary), "the cat")
    tokens(torch.from_numpy(row.ids)[None]).sum().backward()  # type: ignore[no-untyped-call]
    assert tokens.weight.grad is not None
    touched = {vocabulary.words[i] for i in tokens.weight.grad.any(dim=1).nonzero().flatten().tolist()}
    assert touched == {"<S>", "the", "cat", "</S>"}
    assert all(p.grad is None for p in tokens.characters.parameters())


def test_the_spelling_loss_is_one_per_word_for_the_mean_vector_and_moves_no_row() -> None:
    torch.manual_seed(0)
    network = CharacterNetwork([[1, 4]], 3, 0, 4)
    tokens = SpelledWords(9, 4, network)
    words = torch.arange(3, 9)
    with torch.no_grad():
        network.projection.weight.zero_()
        network.projection.bias.copy_(tokens.weight[words].mean(0))
    characters = torch.from_numpy(character_table(["a", "b", "c", "d", "e", "f"]))
    loss = tokens.spelling_loss(words, characters)
    assert float(loss.detach()) == pytest.approx(6.0, rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert tokens.weight.grad is None
    assert network.projection.weight.grad is not None


def test_ids_hold_characters_only_of_words_outside_the_table(
    elmo: Callable[[str], Elmo], vocabulary: Vocabulary
) -> None:
    row = text_row(elmo("both"), WordTokenizer(vocabulary), "the quokka")
    assert row.ids.shape == (4, 51)
    assert row.ids[:, 0].tolist() == [0, vocabulary.id("the"), vocabulary.unknown, 1]
    assert np.array_equal(row.ids[2, 1:], character_table(["quokka"])[0])
    assert not row.ids[[0, 1, 3], 1:].any()


def test_a_table_needs_the_size_of_its_vocabulary() -> None:
    with pytest.raises(ConfigError, match="size of its vocabulary"):
        Elmo(ElmoConfig(**SHAPE, tokens="words"))
