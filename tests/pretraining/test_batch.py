import pytest
import torch

from headstart.pretraining.bert.batches import MaskedBatch
from headstart.pretraining.elmo.batches import LanguageModelBatch


def test_each_direction_counts_every_token_but_one_mark_per_sentence() -> None:
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)  # <S> a b </S>; <S> </S>
    batch = LanguageModelBatch(torch.zeros(2, 4, 50, dtype=torch.int32), mask, torch.zeros(2, 4, dtype=torch.int64))
    assert batch.counts() == {"forward": 4, "backward": 4}


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


def test_sentences_stay_together() -> None:
    batch = LanguageModelBatch(torch.ones(2, 3, 50), torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3))
    assert batch.parts(2) == [batch]
