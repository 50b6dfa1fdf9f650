from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import headstart
from headstart.errors import DataError
from headstart.inspection.senses import AmbiguousWord, compare_senses, occurrence_vectors, own_words
from headstart.pretrained import Pretrained
from headstart.progress import Progress, result_of

BANK = AmbiguousWord(
    "bank",
    {
        "money": ("the bank lends money", "a bank keeps money", "our bank counts money"),
        "river": ("the bank lends water", "a bank keeps water", "our bank counts water"),
    },
)
KNOWN = ["bank", "the", "a", "our", "lends", "keeps", "counts", "money", "water"]


def by_cue(words: list[str]) -> torch.Tensor:
    """Layer 0: the same for every `bank`. Layer 1: what the last word of the sentence says. Other words: in between."""
    typical = torch.full((len(words), 2), 0.5)
    place = words.index("bank")
    static, contextual = typical.clone(), typical.clone()
    static[place] = torch.tensor([3.0, 1.0])
    contextual[place] = torch.eye(2)[int(words[-1] == "water")]
    return torch.stack([static, contextual])


def by_neighbour(words: list[str]) -> torch.Tensor:
    place = words.index("bank")
    vectors = torch.zeros(1, len(words), len(KNOWN))
    vectors[0, place, KNOWN.index(words[place - 1])] = 1.0
    return vectors


def test_senses_by_hand(toy: Callable[..., Pretrained]) -> None:
    """In layer 1 the mean is (0.5, 0.5), so that the senses lie at (0.5, -0.5) and (-0.5, 0.5): opposite."""
    found = result_of(compare_senses(toy(KNOWN, (2, 2), by_cue), [BANK]))
    layer = found.layers[1]
    assert (found.encoder, found.sentences, found.chance) == ("toy", 6, 0.5)
    assert (layer.within, layer.between, layer.difference) == pytest.approx((1.0, -1.0, 2.0), abs=1e-6)
    assert layer.interval == pytest.approx((2.0, 2.0), abs=1e-6)
    assert (layer.accuracy, layer.accuracy_interval) == (1.0, (1.0, 1.0))
    assert [(word.word, word.accuracy) for word in layer.words] == [("bank", 1.0)]
    assert found.best is layer


def test_static_vectors_do_not_tell_senses_apart(
    toy: Callable[..., Pretrained], pretrained_runs: dict[str, Path]
) -> None:
    first = result_of(compare_senses(toy(KNOWN, (2, 2), by_cue), [BANK])).layers[0]
    assert first.within == first.between == 1.0
    vectors = result_of(compare_senses(headstart.load(pretrained_runs["static"])))
    for layer, chance in ((first, 0.5), (vectors.layers[0], vectors.chance)):
        assert layer.difference == 0.0
        assert layer.interval == (0.0, 0.0)
        assert layer.accuracy == pytest.approx(chance)


def test_neighbours_alone_tell_nothing(toy: Callable[..., Pretrained]) -> None:
    """An occurrence's twin, between the same words, is in the other sense; it is left out of both comparisons."""
    layer = result_of(compare_senses(toy(KNOWN, (1, len(KNOWN)), by_neighbour), [BANK])).layers[0]
    assert layer.difference == pytest.approx(0.0, abs=1e-6)
    assert layer.accuracy == 0.5


def test_words_in_pieces_have_the_vectors_of_represent(pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs["bert"])
    assert len(pretrained.tokenizer.encode_words(["sentence"]).ids) > 1
    words = [word for word in own_words() if word.word == "sentence"]
    vectors = result_of(occurrence_vectors(pretrained, words))
    sentences = [one.sentence for one in words[0].occurrences]
    every = pretrained.represent(sentences)
    mean = np.concatenate(every, axis=1).mean(axis=1)
    own = every[3][:, sentences[3].index("sentence")]
    np.testing.assert_allclose(vectors[:, 3], own - mean, atol=1e-5)


def test_the_seed_decides_the_intervals_and_nothing_else(pretrained_runs: dict[str, Path]) -> None:
    pretrained = headstart.load(pretrained_runs["elmo"])
    words = own_words()[:2]
    first = result_of(compare_senses(pretrained, words))
    assert result_of(compare_senses(pretrained, words)) == first
    other = result_of(compare_senses(pretrained, words, seed=1))
    assert [layer.difference for layer in other.layers] == [layer.difference for layer in first.layers]
    assert other.layers[-1].interval != first.layers[-1].interval
    assert all(layer.interval[0] <= layer.difference <= layer.interval[1] for layer in first.layers)
    assert list(compare_senses(pretrained, words))[-1] == Progress("encoding", 50, 50, "sentences")


@pytest.mark.parametrize("word", own_words(), ids=lambda word: word.word)
def test_the_sentences_of_the_package_give_nothing_away(word: AmbiguousWord) -> None:
    """Senses have the same neighbours at the same places, and sentences of about the same length."""
    found = [
        Counter((word.neighbours(sentence), sentence.split().index(word.word)) for sentence in sentences)
        for sentences in word.senses.values()
    ]
    if len(found) == 2:
        assert found[0] == found[1]
    senses_with = Counter(place for sense in found for place in sense)
    assert min(senses_with.values()) >= 2
    assert len(found) == 2 or len({index for _, index in senses_with}) == 1
    assert all(len(set(sentences)) == 10 for sentences in word.senses.values())
    lengths = [np.mean([len(text.split()) for text in sentences]) for sentences in word.senses.values()]
    assert max(lengths) - min(lengths) < 1.5


@pytest.mark.parametrize(
    ("senses", "says"),
    [
        ({"money": ("a bank lends", "the bank keeps")}, "needs two senses or more to compare; got 1"),
        ({"money": ("a bank lends", "the banks keep"), "river": ()}, "must stand once, as a word, in 'the banks keep'"),
        ({"money": ("a bank lends", "A bank lends"), "river": ()}, "money: needs two sentences or more"),
    ],
)
def test_sentences_that_cannot_be_compared_are_refused(senses: dict[str, tuple[str, ...]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        AmbiguousWord("bank", senses)
