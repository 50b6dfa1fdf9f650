"""Points in two dimensions in groups, each with a colour and a marker of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from headstart.report.drawing import canvas, look, style, svg_text, write_picture

HEIGHT = 5.2
LEGEND_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class Cloud:
    """A group of points (x, y)."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scatter:
    """What a picture shows: its groups, and the titles of the whole and of the axes."""

    title: str
    clouds: Sequence[Cloud]
    x_title: str
    y_title: str


def scatter_svg(scatter: Scatter, picture: str) -> str:
    """The <svg> of some groups of points. picture: makes its ids unique in a page."""
    with style():
        return svg_text(draw_scatter(scatter), picture)


def write_scatter(scatter: Scatter, path: Path) -> None:
    with style():
        write_picture(draw_scatter(scatter), path)


def draw_scatter(scatter: Scatter) -> Figure:
    figure, axes = canvas(HEIGHT)
    for place, cloud in enumerate(scatter.clouds):
        colour, marker = look(place + 1)  # the first is grey, for what others are compared with
        x, y = zip(*cloud.points, strict=True)
        axes.scatter(x, y, s=22, color=colour, marker=marker, alpha=0.75, linewidths=0, label=cloud.name)
    axes.set_aspect("equal", "datalim")  # distances mean the same along both axes
    axes.grid(linewidth=0.6)
    axes.set_xlabel(scatter.x_title)
    axes.set_ylabel(scatter.y_title)
    spacing = {"handletextpad": 0.2, "columnspacing": 1.5, "alignment": "left"}
    figure.legend(loc="outside upper left", title=scatter.title, ncols=LEGEND_COLUMNS, frameon=False, **spacing)
    return figure
