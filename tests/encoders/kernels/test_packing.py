import pytest
import torch

from headstart.encoders.kernels.packing import Packing
from headstart.errors import DataError

MASK = torch.tensor([[1, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=torch.bool)


def test_steps_hold_the_longest_first_and_the_second_direction_reads_backwards() -> None:
    packing = Packing.of(MASK, directions=2)
    x = torch.tensor([[1, 2, 0], [4, 5, 6], [0, 0, 0]]).unsqueeze(-1)
    assert packing.sizes == [2, 2, 1]
    assert packing.pack(x)[..., 0].tolist() == [[4, 1, 5, 2, 6], [6, 2, 5, 1, 4]]


@pytest.mark.parametrize("directions", [1, 2])
def test_unpack_undoes_pack(directions: int) -> None:
    x = torch.randn(3, 3, 2) * MASK[..., None]
    packing = Packing.of(MASK, directions)
    torch.testing.assert_close(packing.unpack(packing.pack(x)), x.repeat(1, 1, directions), rtol=0, atol=0)


def test_padding_inside_a_sequence_is_refused() -> None:
    with pytest.raises(DataError, match="at their end only"):
        Packing.of(torch.tensor([[True, False, True]]), directions=1)
