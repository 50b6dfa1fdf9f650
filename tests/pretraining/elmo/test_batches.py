from __future__ import annotations

import numpy as np
import pytest
import torch

from headstart.pretraining.elmo.batches import LanguageModelBatch, LanguageModelBatches, cut_by_work
from headstart.text.characters import characters_of
from headstart.text.vocabulary import SPECIALS, Vocabulary

WORDS = (*SPECIALS, *(f"w{i}" for i in range(20)))
VOCABULARY = Vocabulary(WORDS, np.array([0, 0, 0, *range(20, 0, -1)]))
V = len(WORDS)


def batches(shards, unit="sentence", batch_tokens=60, tokens="characters") -> LanguageModelBatches:
    return LanguageModelBatches(
        shards, VOCABULARY, tokens=tokens, unit=unit, longest=16, batch_tokens=batch_tokens, seed=0
    )


def random_documents(n=50):
    rng = np.random.default_rng(0)
    sizes = [rng.integers(1, 15, size=rng.integers(1, 9)) for _ in range(n)]
    return [[rng.integers(3, V, size=size).tolist() for size in document] for document in sizes]


def test_an_epoch_sees_every_sentence_once_between_its_marks(make_shards) -> None:
    documents = random_documents()
    source = batches(make_shards(documents, V))
    seen = []
    for number in range(len(source)):
        batch = source[number]
        for words, mask in zip(batch.targets, batch.mask, strict=True):
            row = words[mask].tolist()
            assert (row[0], row[-1]) == (0, 1)
            seen.append(tuple(row[1:-1]))
    assert sorted(seen) == sorted(tuple(sentence) for document in documents for sentence in document)


def test_batches_are_of_like_size(make_shards) -> None:
    source = batches(make_shards(random_documents(300), V), batch_tokens=200)
    sizes = [int(source[number].mask.sum()) for number in range(len(source))]
    assert np.mean(sizes) == pytest.approx(200, rel=0.15)
    assert max(sizes) < 2 * 200


def test_characters_are_the_words_own_even_outside_the_vocabulary(make_shards) -> None:
    source = batches(make_shards([[[3, V, 5]], [[4]]], V, extras=["Zürich"]))
    batch = source.collate(np.array([0]))
    assert batch.targets[0].tolist() == [0, 3, 2, 5, 1]
    for place, word in enumerate(["<S>", "w0", "Zürich", "w2", "</S>"]):
        assert batch.ids[0, place].tolist() == characters_of(word).tolist()


def test_a_table_reads_word_numbers_and_spells_only_what_it_does_not_hold(make_shards) -> None:
    shards = make_shards([[[3, V, 5]], [[4]]], V, extras=["Zürich"])
    words, both = (batches(shards, tokens=tokens).collate(np.array([0])) for tokens in ("words", "both"))
    assert words.ids[0].tolist() == both.ids[0, :, 0].tolist() == [0, 3, 2, 5, 1]
    assert both.ids[0, 2, 1:].tolist() == characters_of("Zürich").tolist()
    assert not both.ids[0, [0, 1, 3, 4], 1:].any()


def test_each_batch_brings_words_of_the_table_to_spell(make_shards) -> None:
    source = batches(make_shards(random_documents(), V), tokens="both")
    batch = source[3]
    assert batch.spelled is not None
    words, characters = batch.spelled.words, batch.spelled.characters
    assert batch.counts()["spelling"] == len(words)
    assert int(words.min()) >= len(SPECIALS)
    assert all(row.tolist() == characters_of(WORDS[word]).tolist() for word, row in zip(words, characters, strict=True))
    again = source[3].spelled
    assert again is not None
    assert torch.equal(again.words, words)


def test_padding_is_zero_everywhere(make_shards) -> None:
    batch = batches(make_shards([[[3, 4, 5], [6]]], V)).collate(np.array([0, 1]))
    assert batch.mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert not batch.ids[~batch.mask].any()
    assert batch.counts() == {"forward": 6, "backward": 6}


def test_windows_run_through_sentence_ends(make_shards) -> None:
    documents = random_documents()
    source = batches(make_shards(documents, V), unit="window")
    words = sum(int(source[number].mask.sum()) - 2 * len(source[number].mask) for number in range(len(source)))
    assert words == sum(len(sentence) for document in documents for sentence in document)


def test_a_batch_is_a_function_of_seed_and_number(make_shards) -> None:
    shards = make_shards(random_documents(), V)
    later = batches(shards)
    later[1]
    assert torch.equal(batches(shards)[9].targets, later[9].targets)


def test_epochs_differ(make_shards) -> None:
    source = batches(make_shards(random_documents(), V))
    first, second = source[0].targets, source[len(source)].targets
    assert first.shape != second.shape or not torch.equal(first, second)


@pytest.mark.parametrize("n_batches", [1, 3, 5])
def test_cuts_leave_no_batch_empty(n_batches: int) -> None:
    groups = cut_by_work(np.arange(5), np.array([1, 1, 1, 1, 100]), n_batches)
    assert len(groups) == n_batches
    assert all(len(group) for group in groups)
    assert sorted(np.concatenate(groups)) == list(range(5))


def test_each_direction_counts_every_token_but_one_mark_per_sentence() -> None:
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)  # <S> a b </S>; <S> </S>
    batch = LanguageModelBatch(torch.zeros(2, 4, 50, dtype=torch.int32), mask, torch.zeros(2, 4, dtype=torch.int64))
    assert batch.counts() == {"forward": 4, "backward": 4}


def test_sentences_stay_together() -> None:
    batch = LanguageModelBatch(torch.ones(2, 3, 50), torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3))
    assert batch.parts(2) == [batch]
