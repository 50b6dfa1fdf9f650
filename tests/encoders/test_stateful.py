import pytest
import torch
from torch import Tensor

from headstart.encoders.elmo import Elmo, ElmoConfig
from headstart.encoders.stateful import LstmState

P = 4


def elmo(**changes: object) -> Elmo:
    torch.manual_seed(0)
    made = Elmo(ElmoConfig(**{"cell": 8, "projection": P, "filters": [[1, 4], [2, 6]], "highway": 1, **changes})).eval()
    with torch.no_grad():  # so that the clips are reached and the states matter
        for layer in made.layers:
            layer.weight.mul_(3)
    return made


def characters(B: int, T: int) -> Tensor:
    return torch.randint(1, 262, (B, T, 50), generator=torch.Generator().manual_seed(B * T))


def ragged(*lengths: int) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("directions", ["both", "forward"])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_from_zero_it_is_the_encoder_itself(residual: bool, directions: str, clip: float | None) -> None:
    encoder = elmo(residual=residual, directions=directions, cell_clip=clip, projection_clip=clip)
    ids, mask = characters(4, 6), ragged(4, 6, 1, 5)
    states, _ = encoder.infer_from(None, ids, mask)
    with torch.no_grad():
        expected = encoder.hidden_states(ids, mask)
    torch.testing.assert_close(states, expected, atol=1e-6, rtol=0)


def test_two_halves_of_a_stream_are_the_whole_for_the_direction_that_reads_them_in_order() -> None:
    encoder, ids = elmo(), characters(2, 6)
    whole, half = ragged(6, 6), ragged(3, 3)
    expected, _ = encoder.infer_from(None, ids, whole)
    first, carried = encoder.infer_from(None, ids[:, :3], half)
    second, _ = encoder.infer_from(carried, ids[:, 3:], half)
    for R, a, b in zip(expected, first, second, strict=True):
        torch.testing.assert_close(torch.cat([a, b], dim=1)[..., :P], R[..., :P], atol=1e-6, rtol=0)
    late, carried = encoder.infer_from(None, ids[:, 3:], half)
    early, _ = encoder.infer_from(carried, ids[:, :3], half)
    for R, a, b in zip(expected, early, late, strict=True):
        torch.testing.assert_close(torch.cat([a, b], dim=1)[..., P:], R[..., P:], atol=1e-6, rtol=0)
    assert not torch.allclose(first[1], early[1])


def test_a_row_goes_on_from_its_own_last_token_whatever_lies_beside_it() -> None:
    encoder, ids, mask = elmo(), characters(3, 5), ragged(2, 5, 3)
    _, together = encoder.infer_from(None, ids, mask)
    for row, length in enumerate((2, 5, 3)):
        _, alone = encoder.infer_from(None, ids[row : row + 1, :length], ragged(length))
        torch.testing.assert_close(together.h[:, :, row], alone.h[:, :, 0], atol=1e-6, rtol=0)
        torch.testing.assert_close(together.c[:, :, row], alone.c[:, :, 0], atol=1e-6, rtol=0)


def test_rows_that_are_absent_keep_their_state_and_new_ones_start_from_zero() -> None:
    encoder = elmo()
    _, three = encoder.infer_from(None, characters(3, 4), ragged(4, 2, 3))
    kept = three.h.clone()
    _, after = encoder.infer_from(three, characters(1, 5), ragged(5))
    assert torch.equal(after.h[:, :, 1:], kept[:, :, 1:])
    assert not torch.equal(after.h[:, :, :1], kept[:, :, :1])
    assert torch.equal(three.h, kept)
    ids, mask = characters(5, 4), ragged(4, 4, 4, 4, 2)
    states, five = encoder.infer_from(after, ids, mask)
    fresh, _ = encoder.infer_from(None, ids, mask)
    assert five.h.shape[2] == five.c.shape[2] == 5
    torch.testing.assert_close(states[2][3:], fresh[2][3:], atol=1e-6, rtol=0)
    assert not torch.allclose(states[2][:3], fresh[2][:3])


def test_an_empty_row_changes_no_state_and_no_gradient_is_kept() -> None:
    encoder = elmo()
    _, before = encoder.infer_from(None, characters(2, 3), ragged(3, 2))
    mask = ragged(3, 2)
    mask[1] = False
    states, after = encoder.infer_from(before, characters(2, 3), mask)
    assert torch.equal(after.c[:, :, 1], before.c[:, :, 1])
    assert not any(state.requires_grad for state in [*states, after.h, after.c])


def test_nothing_read_is_no_rows() -> None:
    nothing = LstmState.empty(2, 2, P, 8, torch.zeros(1))
    assert nothing.h.shape == (2, 2, 0, P)
    assert not nothing.of_rows(3).c.any()
    assert nothing.of_rows(3).c.shape == (2, 2, 3, 8)
