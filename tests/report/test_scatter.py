from __future__ import annotations

import re

from headstart.report.drawing import style
from headstart.report.scatter import Cloud, Scatter, draw_scatter, scatter_svg

SHOWN = Scatter("play", [Cloud("stage (2)", [(0, 0), (1, 1)]), Cloud("game (1)", [(3, 1)])], "first", "second")


def test_each_group_has_a_colour_and_a_marker_of_its_own() -> None:
    with style():
        figure = draw_scatter(SHOWN)
    drawn = figure.axes[0].collections
    assert [points.get_offsets().tolist() for points in drawn] == [[[0, 0], [1, 1]], [[3, 1]]]
    assert len({tuple(points.get_facecolor()[0]) for points in drawn}) == 2
    assert len({points.get_paths()[0].vertices.tobytes() for points in drawn}) == 2


def test_the_picture_names_everything_and_is_the_same_each_time() -> None:
    svg = scatter_svg(SHOWN, "one")
    assert svg == scatter_svg(SHOWN, "one")
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert {"play", "stage (2)", "game (1)", "first", "second"} <= set(texts)
