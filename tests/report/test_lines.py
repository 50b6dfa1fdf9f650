from __future__ import annotations

from xml.etree import ElementTree

from headstart.report.drawing import style
from headstart.report.lines import Line, Point, apart, draw_lines, line_plot


def test_ticks_do_not_run_into_each_other() -> None:
    assert apart([50, 200, 1000, 6920]) == [50, 200, 1000, 6920]
    assert apart([50, 200, 6500, 6920]) == [50, 200, 6920]


def test_on_a_plain_axis_places_are_as_far_apart_as_their_difference() -> None:
    assert apart([0.05, 0.15, 0.3, 0.6], log=False) == [0.05, 0.15, 0.3, 0.6]
    assert apart([50, 200, 6500, 6920], log=False) == [200, 6920]


def test_a_plot_names_its_lines_and_axes_and_is_the_same_every_time() -> None:
    banded = Line("frozen", [Point(0.6, 70.0, 65.0, 75.0), Point(0.15, 80.0, 78.0, 82.0)])
    lines = [banded, Line("chance", [Point(0.15, 50.0), Point(0.6, 50.0)], dashed=True)]
    svg = line_plot(lines, "mask rate", "accuracy, %", "rates")
    assert svg == line_plot(lines, "mask rate", "accuracy, %", "rates")
    words = {node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")}
    assert {"frozen", "chance", "mask rate", "accuracy, %", "0.15", "0.6"} <= words


def test_a_single_point_shows_its_interval_and_a_dashed_line_goes_across() -> None:
    lines = [Line("one", [Point(0, 5, 4, 7)]), Line("other", [Point(0, 2)], dashed=True)]
    with style():
        (axes,) = draw_lines(lines, "x", "y", log_x=False).axes
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert drawn == [([0, 0], [4, 7]), ([0], [5]), ([0, 1], [2, 2])]
