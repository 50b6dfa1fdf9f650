from __future__ import annotations

from pathlib import Path

import pytest

from headstart.errors import ConfigError
from headstart.report.drawing import canvas, check_picture, short, spread, style, write_picture


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


@pytest.mark.parametrize(("suffix", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_picture_is_the_same_bytes_each_time(tmp_path: Path, suffix: str, begins: bytes) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in ("one", "other")]
    for path in paths:
        with style():
            figure, axes = canvas(2.0)
            axes.plot([1, 2])
            write_picture(figure, path)
    one, other = (path.read_bytes() for path in paths)
    assert one == other
    assert one.startswith(begins)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_picture_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    check_picture(None)
    check_picture(tmp_path / "fine.svg")
    with pytest.raises(ConfigError, match=r"x.gif: a picture is a file with the ending .svg, .png or .pdf"):
        check_picture(tmp_path / "x.gif")
    with pytest.raises(ConfigError, match="there is no folder"):
        check_picture(tmp_path / "none" / "x.svg")
