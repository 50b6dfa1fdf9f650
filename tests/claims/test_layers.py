from __future__ import annotations

import pytest

from headstart.claims.layers import depth


def test_the_depth_of_a_mix_goes_from_the_lowest_layer_to_the_highest() -> None:
    assert depth([1.0, 0.0, 0.0]) == 0.0
    assert depth([0.0, 0.0, 1.0]) == 1.0
    assert depth([0.25, 0.25, 0.25, 0.25]) == pytest.approx(0.5)
