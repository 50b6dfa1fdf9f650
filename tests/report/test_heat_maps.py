from __future__ import annotations

import numpy as np

from headstart.report.drawing import style, svg_text
from headstart.report.heat_maps import HeatMap, draw_grid, draw_named

VALUES = np.array([[0.9, 0.1, 0.0], [0.25, 0.25, 0.5], [0.0, 0.004, 0.996]], np.float32)


def test_a_grid_names_its_rows_and_columns() -> None:
    maps = [HeatMap(title, VALUES) for title in ("one", "two")]
    with style():
        figure = draw_grid([("upper", maps), ("lower", maps)], "what it shows")
        svg = svg_text(figure, "grid")
    assert sum(bool(axes.images) for axes in figure.axes) == 4
    assert all(name in svg for name in (">one<", ">two<", ">upper<", ">lower<", ">what it shows<", ">25 %<"))


def test_one_map_has_names_at_both_axes_and_numbers_where_there_is_anything_to_tell() -> None:
    with style():
        figure = draw_named([HeatMap("alone", VALUES)], ["x", "y", "z"], "caption", columns=3)
    (axes,) = (axes for axes in figure.axes if axes.images)
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert [label.get_text() for label in labels] == ["x", "y", "z"]
    assert [text.get_text() for text in axes.texts] == ["90", "10", "25", "25", "50", "100"]
    np.testing.assert_array_equal(axes.images[0].get_array(), VALUES)


def test_several_maps_wrap_and_only_the_first_of_a_line_repeats_the_names() -> None:
    with style():
        figure = draw_named([HeatMap(str(n), VALUES) for n in range(4)], ["x", "y", "z"], "caption", columns=3)
    maps = [axes for axes in figure.axes if axes.images]
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in maps]
    assert [any(of_map) for of_map in names] == [True, False, False, True]
    assert not any(axes.texts for axes in maps)
