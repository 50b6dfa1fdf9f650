from __future__ import annotations

import pytest

from headstart.report.drawing import short, spread


def test_names_that_are_apart_stay() -> None:
    assert spread([1.0, 5.0, 9.0], gap=2.0, low=0.0, high=10.0) == [1.0, 5.0, 9.0]


def test_names_that_touch_move_around_their_mean() -> None:
    assert spread([4.0, 5.0, 6.0], gap=2.0, low=0.0, high=10.0) == pytest.approx([3.0, 5.0, 7.0])
    assert spread([5.0, 5.0], gap=2.0, low=0.0, high=10.0) == pytest.approx([4.0, 6.0])


def test_names_stay_within_the_axis() -> None:
    assert spread([9.9, 10.0], gap=2.0, low=0.0, high=10.0) == pytest.approx([8.0, 10.0])
    assert spread([0.0, 0.1, 0.2], gap=2.0, low=0.0, high=10.0) == pytest.approx([0.0, 2.0, 4.0])


def test_long_names_are_cut() -> None:
    assert short("ELMo, frozen") == "ELMo, frozen"
    assert len(short("x" * 100)) == 32
    assert short("x" * 100).endswith("…")
