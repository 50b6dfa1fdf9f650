import torch

from headstart.batches.batch import LanguageModelBatch, MaskedBatch


def test_each_direction_counts_every_token_but_one_mark_per_sentence() -> None:
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)  # <S> a b </S>; <S> </S>
    batch = LanguageModelBatch(torch.zeros(2, 4, 50, dtype=torch.int32), mask, torch.zeros(2, 4, dtype=torch.int64))
    assert batch.counts() == {"forward": 4, "backward": 4}


def test_masked_batch_counts_next_only_where_that_task_is_on() -> None:
    ids = torch.zeros(2, 3, dtype=torch.int64)
    shared = (ids, ids.bool(), ids, torch.tensor([1, 2, 4]), torch.tensor([7, 8, 9]))
    assert MaskedBatch(*shared, torch.tensor([True, False])).counts() == {"masked": 3, "next": 2}
    assert MaskedBatch(*shared, None).counts() == {"masked": 3}
