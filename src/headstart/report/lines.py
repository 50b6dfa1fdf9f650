"""Lines with 95 % bands and their names at the right end: a learning curve, or any score over any number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from headstart.report.drawing import canvas, look, short, spread, style, svg_text

DOTS = (0, (1, 2))
DASHES = (0, (4, 3))
NAMES_APART = 0.062


@dataclass(frozen=True, slots=True)
class Point:
    """low, high: the 95 % interval, where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """colour: by the line's place among the others unless given. dashed: without markers, for what is compared with."""

    name: str
    points: Sequence[Point]
    colour: str | None = None
    dashed: bool = False


def line_plot(lines: Sequence[Line], x_title: str, y_title: str, picture: str, *, log_x: bool = False) -> str:
    """The <svg> of some lines, with ticks where the points are. picture: makes its ids unique in a page."""
    named = [replace(line, name=short(line.name)) for line in lines]
    with style():
        return svg_text(draw_lines(named, x_title, y_title, log_x=log_x), picture)


def draw_lines(lines: Sequence[Line], x_title: str, y_title: str, *, log_x: bool) -> Figure:
    figure, axes = canvas(4.2)
    places = sorted({point.x for line in lines for point in line.points})
    if log_x:
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(apart(places, log_x)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    axes.grid(axis="both", linewidth=0.6)
    ends = []
    for place, line in enumerate(lines):
        if line.points:
            ends.append(draw_line(axes, line, place))
    axes.set_xlabel(f"{x_title} (log scale)" if log_x else x_title)
    axes.set_ylabel(y_title)
    axes.margins(x=0.03, y=0.05)
    name_ends(axes, ends)
    return figure


def draw_line(axes: Axes, line: Line, place: int) -> tuple[float, float, str, str]:
    """Its end (y, x), name and colour."""
    points = sorted(line.points, key=lambda point: point.x)
    colour, marker = look(place)
    colour = line.colour or colour
    x, y = [point.x for point in points], [point.y for point in points]
    band = [(point.x, point.low, point.high) for point in points if point.low is not None and point.high is not None]
    if band:
        at, low, high = zip(*band, strict=True)
        axes.fill_between(at, low, high, color=colour, alpha=0.11, lw=0)
        if len(band) == 1:  # a band has no width there
            axes.plot(at * 2, [*low, *high], color=colour, linewidth=2.2)
    if line.dashed and x[0] == x[-1]:
        axes.axhline(y[-1], color=colour, linestyle=DASHES, linewidth=1.2)
    elif line.dashed:
        axes.plot(x, y, color=colour, linestyle=DASHES, linewidth=1.2)
    else:
        axes.plot(x, y, color=colour, marker=marker, markersize=4.5, linewidth=1.8)
    return y[-1], x[-1], line.name, colour


def name_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Each line's name right of its end (y, x, name, colour), moved apart where the ends are close."""
    low, high = axes.get_ylim()
    ordered = sorted(ends)
    heights = spread([y for y, *_ in ordered], gap=(high - low) * NAMES_APART, low=low, high=high)
    for (y, x, name, colour), height in zip(ordered, heights, strict=True):
        # Thin and dotted, so that the way to a name is not taken for data where a line ends early.
        line = {"arrowstyle": "-", "color": colour, "lw": 0.8, "linestyle": DOTS, "shrinkB": 4, "relpos": (0, 0.5)}
        place = (1.035, (height - low) / (high - low))
        axes.annotate(
            name, (x, y), place, textcoords="axes fraction", va="center", annotation_clip=False, arrowprops=line
        )


def apart(places: Sequence[float], log: bool = True) -> list[float]:
    """The places whose ticks do not run into each other, always with the largest."""
    on_axis = math.log if log else float
    kept = [places[-1]]
    room = 0.07 * (on_axis(places[-1]) - on_axis(places[0]))
    for place in reversed(places[:-1]):
        if on_axis(kept[-1]) - on_axis(place) > room:
            kept.append(place)
    return kept[::-1]


def tick_text(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"
