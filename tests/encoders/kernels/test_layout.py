from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch

from headstart.encoders.bert import Bert, BertConfig
from headstart.encoders.kernels.layout import Layout, on_parts

WithThreads = Callable[[int], AbstractContextManager[None]]
LENGTHS = [5, 2, 9, 1, 7]


def small_bert() -> Bert:
    torch.manual_seed(0)
    return Bert(BertConfig(layers=2, width=12, heads=3, inner=20, positions=16, dropout=0, attention_dropout=0), 50)


def batch(lengths: list[int] = LENGTHS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    T = max(lengths)
    ids = torch.randint(1, 50, (len(lengths), T), generator=generator)
    segments = torch.randint(0, 2, (len(lengths), T), generator=generator)
    return ids, torch.arange(T) < torch.tensor(lengths)[:, None], segments


def test_padding_comes_back_as_zeros_and_the_rest_as_it_was() -> None:
    _, mask, _ = batch()
    layout = Layout.of(mask)
    x = torch.randn(*mask.shape, 3)
    assert len(layout.unpad(x)) == sum(LENGTHS)
    assert torch.equal(layout.pad(layout.unpad(x)), x * mask[..., None])


def test_nothing_is_copied_where_there_is_no_padding() -> None:
    layout = Layout.of(torch.ones(2, 3, dtype=torch.bool))
    x = torch.randn(2, 3, 4)
    assert layout.pad(layout.unpad(x)).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("training", [True, False])
def test_a_padded_batch_gives_the_values_and_gradients_of_its_sequences_alone(training: bool) -> None:
    bert = small_bert().train(training)
    ids, mask, segments = batch()
    weights = torch.randn(3, *mask.shape, 12)
    together = torch.stack(bert.hidden_states(ids, mask, segments))
    parameters = [p for name, p in bert.named_parameters() if "pooler" not in name]
    gradients = torch.autograd.grad((together * weights).sum(), parameters)
    one_by_one = [torch.zeros_like(p) for p in parameters]
    for row, n in enumerate(LENGTHS):
        only = slice(row, row + 1), slice(0, n)
        states = torch.stack(bert.hidden_states(ids[only], mask[only], segments[only]))
        torch.testing.assert_close(together[:, row, :n], states[:, 0], atol=1e-5, rtol=1e-5)
        assert not together[:, row, n:].any()
        mine = torch.autograd.grad((states[:, 0] * weights[:, row, :n]).sum(), parameters)
        one_by_one = [a + b for a, b in zip(one_by_one, mine, strict=True)]
    for a, b in zip(gradients, one_by_one, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("lengths", [LENGTHS, [40] * 6, [1, 64], [3]])
def test_inference_gives_the_values_of_the_training_path(
    threads: int, lengths: list[int], with_threads: WithThreads
) -> None:
    torch.manual_seed(0)
    config = BertConfig(layers=2, width=12, heads=3, inner=20, positions=64)
    bert = Bert(config, 50).eval()
    ids, mask, segments = batch(lengths)
    plain = bert.hidden_states(ids, mask, segments)
    with torch.no_grad(), with_threads(threads):
        inferred = bert.hidden_states(ids, mask, segments)
        without_segments = bert.hidden_states(ids, mask)
    for a, b in zip(inferred, plain, strict=True):
        torch.testing.assert_close(a, b.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(without_segments, bert.hidden_states(ids, mask), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lengths", [LENGTHS, [40] * 6, [1, 64]])
def test_only_the_top_layer_leaves_out_what_is_not_wanted(
    threads: int, lengths: list[int], with_threads: WithThreads
) -> None:
    torch.manual_seed(0)
    bert = Bert(BertConfig(layers=2, width=12, heads=3, inner=20, positions=64), 50).eval()
    ids, mask, segments = batch(lengths)
    wanted = mask & (torch.rand(mask.shape) < 0.5)
    with torch.no_grad(), with_threads(threads):
        *below, top = bert.infer(ids, mask, segments, wanted=wanted).padded(mask)
        (only_top,) = bert.infer(ids, mask, segments, [-1], wanted).padded(mask)
        (nothing,) = bert.infer(ids, mask, segments, [-1], mask & False).padded(mask)
    *plain_below, plain_top = (state.detach() for state in bert.hidden_states(ids, mask, segments))
    torch.testing.assert_close(below, plain_below, atol=1e-5, rtol=1e-5)
    for found in (top, only_top):
        torch.testing.assert_close(found[wanted], plain_top[wanted], atol=1e-5, rtol=1e-5)
    assert nothing.shape == plain_top.shape


def test_blocks_above_the_highest_layer_that_is_asked_for_do_not_run() -> None:
    bert = small_bert().eval()
    ids, mask, _ = batch()
    whole = bert.hidden_states(ids, mask)
    bert.blocks[1].register_forward_pre_hook(lambda *_: pytest.fail("the block above layer 1 ran"))
    for layers in ([1, 0], [-2], [0]):
        found = bert.hidden_states(ids, mask, None, layers)
        torch.testing.assert_close(found, [whole[layer] for layer in layers])
        with torch.no_grad():
            inferred = bert.hidden_states(ids, mask, None, layers)
        torch.testing.assert_close(inferred, [state.detach() for state in found], atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("two_threads")
def test_parts_hold_about_as_many_pieces_as_each_other() -> None:
    lengths = [64] * 3 + [32] * 6 + [8] * 8
    ids, mask, _ = batch(lengths)
    seen: list[int] = []

    def count(ids: torch.Tensor, mask: torch.Tensor, segments: None) -> list[torch.Tensor]:
        seen.append(int(mask.sum()))
        return [ids[mask][:, None].float()]

    (joined,) = on_parts(count, ids, mask, None).padded(mask)
    assert sum(seen) == sum(lengths)
    assert max(seen) - min(seen) <= 64
    assert torch.equal(joined[..., 0], (ids * mask).float())
