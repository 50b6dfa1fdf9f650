from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from headstart.errors import DataError
from headstart.pretraining.bert.batches import (
    MaskedBatch,
    MaskedBatches,
    MaskedConfig,
    PieceTable,
    choose_positions,
    corrupt,
)

V = 1000
PIECES = PieceTable(size=V, pad=0, cls=2, sep=3, mask=4, continues=np.arange(V) % 3 == 0, log_frequency=np.zeros(V))


def corpus(make_shards, documents: int = 60, sentences: int = 12):
    """Documents whose every id names the document, so that a text's origin can be read off."""
    rng = np.random.default_rng(0)
    texts = [[[10 + d] * int(rng.integers(3, 20)) for _ in range(sentences)] for d in range(documents)]
    return make_shards(texts, V)


def batches(shards, **config) -> MaskedBatches:
    return MaskedBatches(shards, PIECES, MaskedConfig(**{"length": 64, **config}), batch_sequences=16, seed=1)


def restored(batch) -> torch.Tensor:
    """The ids before corruption."""
    ids = batch.ids.clone().flatten()
    ids[batch.positions] = batch.gold
    return ids.view_as(batch.ids)


def test_mask_proportions(make_shards) -> None:
    source = batches(corpus(make_shards))
    hidden = masks = kept = candidates = 0
    for number in range(2 * len(source)):
        batch = source[number]
        now = batch.ids.flatten()[batch.positions]
        hidden += len(batch.gold)
        masks += int((now == PIECES.mask).sum())
        kept += int((now == batch.gold).sum())
        candidates += int(((restored(batch) >= 10) & batch.mask).sum())
    assert hidden / candidates == pytest.approx(0.15, abs=0.005)
    assert masks / hidden == pytest.approx(0.8, abs=0.02)
    assert kept / hidden == pytest.approx(0.1, abs=0.02)


def test_rate_is_an_option_and_the_least_is_one(make_shards) -> None:
    line = np.array([2, 10, 11, 12, 13, 3])
    rng = np.random.default_rng(0)
    assert len(choose_positions(line, PIECES, MaskedConfig(mask_rate=0.5), rng)) == 2
    assert len(choose_positions(line, PIECES, MaskedConfig(mask_rate=0.001), rng)) == 1


def test_marks_and_padding_are_never_hidden(make_shards) -> None:
    source = batches(corpus(make_shards))
    for number in range(len(source)):
        batch = source[number]
        assert (batch.gold >= 10).all()
        assert batch.mask.flatten()[batch.positions].all()


def test_whole_words_are_hidden_whole() -> None:
    # Ids divisible by three continue a word: words are [10 12 15] [11] [13 18].
    line = np.array([2, 10, 12, 15, 11, 13, 18, 3])
    words = [{1, 2, 3}, {4}, {5, 6}]
    for seed in range(50):
        config = MaskedConfig(mask_rate=0.5, whole_words=True)
        chosen = set(choose_positions(line, PIECES, config, np.random.default_rng(seed)).tolist())
        assert len(chosen) == 3
        assert all(word <= chosen or not word & chosen for word in words)


def test_rare_pieces_are_hidden_in_proportion_to_their_weight() -> None:
    """One of two pieces is hidden. The rarer has a hundredth of the other's frequency: at 0.5, ten times its chance."""
    line, rng = np.array([2, 10, 11, 3]), np.random.default_rng(0)
    log_frequency = np.zeros(V)
    log_frequency[11] = np.log(0.01)
    pieces, config = replace(PIECES, log_frequency=log_frequency), MaskedConfig(mask_rate=0.5, rare_first=0.5)
    hidden = [int(choose_positions(line, pieces, config, rng)[0]) for _ in range(4_000)]
    assert hidden.count(2) / len(hidden) == pytest.approx(10 / 11, abs=0.02)


def test_corruption_draws_from_the_whole_vocabulary() -> None:
    gold = np.full(20_000, 7)
    now = corrupt(gold, PIECES, np.random.default_rng(0))
    random = now[(now != 7) & (now != PIECES.mask)]
    assert random.max() > 0.9 * V
    assert len(random) / len(gold) == pytest.approx(0.1, abs=0.01)


def test_every_masked_piece_can_become_the_mask(make_shards) -> None:
    batch = batches(corpus(make_shards), corruption="mask")[0]
    assert (batch.ids.flatten()[batch.positions] == PIECES.mask).all()


def test_pairs_are_balanced_and_random_ones_come_from_another_document(make_shards) -> None:
    source = batches(corpus(make_shards))
    next_ones = rows = 0
    for number in range(2 * len(source)):
        batch = source[number]
        for ids, segments, mask, is_next in zip(
            restored(batch), batch.segments, batch.mask, batch.is_next, strict=True
        ):
            first = set(ids[mask & (segments == 0) & (ids >= 10)].tolist())
            second = set(ids[mask & (segments == 1) & (ids >= 10)].tolist())
            assert len(first) == len(second) == 1
            assert (first == second) == bool(is_next)
            next_ones, rows = next_ones + int(is_next), rows + 1
    assert next_ones / rows == pytest.approx(0.5, abs=0.08)


def test_shape_of_a_sequence(make_shards) -> None:
    batch = batches(corpus(make_shards))[0]
    ids, segments = restored(batch)[0], batch.segments[0]
    assert ids[0] == PIECES.cls
    assert (ids == PIECES.sep).sum() == 2
    assert batch.ids.shape[1] <= 64
    second = int((segments == 1).nonzero()[0])
    assert ids[second - 1] == PIECES.sep


def test_without_pairs_there_is_one_segment(make_shards) -> None:
    batch = batches(corpus(make_shards, documents=1), nsp=False)[0]
    assert batch.is_next is None
    assert not batch.segments.any()
    assert (restored(batch)[0] == PIECES.sep).sum() == 1
    assert batch.counts() == {"masked": len(batch.gold)}


def test_one_document_cannot_give_pairs(make_shards) -> None:
    with pytest.raises(DataError, match=r"has 1 document.*--no-nsp"):
        batches(corpus(make_shards, documents=1))


def test_a_batch_is_a_function_of_seed_and_number(make_shards) -> None:
    shards = corpus(make_shards)
    one, two = batches(shards)[7], batches(shards)[7]
    assert torch.equal(one.ids, two.ids)
    assert torch.equal(one.positions, two.positions)


def test_masks_differ_each_time_a_sequence_is_seen(make_shards) -> None:
    source = batches(make_shards([[[10, 11, 13, 14, 16, 17, 19, 20] * 3]] * 2, V), nsp=False)
    assert not torch.equal(source[0].positions, source[len(source)].positions)


def test_one_unit_documents_still_make_pairs(make_shards) -> None:
    batch = batches(make_shards([[[10]], [[11]], [[13]]], V))[0]
    assert not batch.is_next.any()


def test_masked_batch_counts_next_only_where_that_task_is_on() -> None:
    ids = torch.zeros(2, 3, dtype=torch.int64)
    shared = (ids, ids.bool(), ids, torch.tensor([1, 2, 4]), torch.tensor([7, 8, 9]))
    assert MaskedBatch(*shared, torch.tensor([True, False])).counts() == {"masked": 3, "next": 2}
    assert MaskedBatch(*shared, None).counts() == {"masked": 3}


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_parts_of_a_masked_batch_are_its_sequences_with_their_hidden_pieces(n: int) -> None:
    generator = torch.Generator().manual_seed(0)
    B, T = 5, 6
    ids = torch.randint(0, 90, (B, T), generator=generator)
    positions = torch.tensor([1, 4, 7, 8, 13, 22, 29])
    whole = MaskedBatch(
        ids, ids > 9, ids % 2, positions, ids.flatten()[positions], torch.tensor([True, False, True, True, False])
    )
    parts = whole.parts(n)
    assert len(parts) == min(n, B)
    for name in ("ids", "mask", "segments", "gold", "is_next"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))
    for part in parts:
        assert torch.equal(part.ids.flatten()[part.positions], part.gold)
    assert whole.counts() == {name: sum(part.counts()[name] for part in parts) for name in ("masked", "next")}
