"""The charts: a row for each thing that grows, time per token on the left and peak memory on the right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from bench.growth.series import SERIES
from bench.growth.table import Point, lines_of
from headstart.report.drawing import COLOURS, WIDTH, style, svg_text

ROW_HEIGHT = 1.9
LOOKS = {
    "BERT mini, encoding": (COLOURS[3], "o", "--"),
    "BERT mini, training": (COLOURS[3], "s", "-"),
    "ELMo mini, encoding": (COLOURS[4], "o", "--"),
    "ELMo mini, training": (COLOURS[4], "s", "-"),
    "tokenising to shards": (COLOURS[0], "^", "-"),
    "word vectors, one pass": (COLOURS[6], "D", "-"),
    "BERT tiny, encoding": (COLOURS[2], "o", "--"),
}
"""Colour, marker and stroke: a line looks the same in every chart."""
LEAST_SHARE = 0.16
"""Of the axis, between two labels."""
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def picture(points: Sequence[Point]) -> str:
    """The charts as SVG; the same points give the same bytes."""
    with style():
        return svg_text(draw(points), "growth")


def draw(points: Sequence[Point]) -> Figure:
    shown = [series for series in SERIES if lines_of(points, series)]
    figure = Figure(figsize=(WIDTH, ROW_HEIGHT * len(shown) + 0.4), layout="constrained")
    grid = figure.subplots(len(shown), 2, squeeze=False)
    for (left, right), series in zip(grid, shown, strict=True):
        lines = lines_of(points, series)
        chart(left, lines, lambda point: point.microseconds)
        chart(right, lines, lambda point: point.megabytes)
        for axes in (left, right):
            axes.set_xlabel(SERIES[series])
        right.legend(
            loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8, handlelength=2.4, borderaxespad=0
        )
    grid[0][0].set_title("time per token, µs", loc="left", fontsize=9, fontweight="bold")
    grid[0][1].set_title("peak memory, MB", loc="left", fontsize=9, fontweight="bold")
    return figure


def chart(axes: Axes, lines: dict[str, list[Point]], value: Callable[[Point], float]) -> None:
    """Log scales in both directions, the lower end of y no higher than a third of the lowest point's decade."""
    for line, points in lines.items():
        colour, marker, stroke = LOOKS.get(line, (COLOURS[7], "o", "-"))
        x, y = [point.x for point in points], [value(point) for point in points]
        axes.plot(x, y, stroke, color=colour, marker=marker, markersize=4, linewidth=1.6, label=line)
    axes.set_xscale("log")
    axes.set_yscale("log")
    drawn = [value(point) for points in lines.values() for point in points]
    # Flat must look flat: the axis spans a decade at least, whatever the noise.
    low, high = min(drawn), max(drawn)
    middle = (low * high) ** 0.5
    axes.set_ylim(min(low / 1.4, middle / 10**0.5), max(high * 1.4, middle * 10**0.5))
    axes.xaxis.set_major_locator(
        FixedLocator(apart(sorted({point.x for points in lines.values() for point in points})))
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short_number(x)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    axes.grid(axis="y", linewidth=0.6)
    axes.margins(x=0.06)


def short_number(x: float) -> str:
    for size, unit in UNITS:
        if x >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:.3g}"


def apart(ticks: list[float]) -> list[float]:
    """Those of them, the first and the last among them, whose labels do not meet on a logarithmic axis."""
    least = (ticks[-1] / ticks[0]) ** LEAST_SHARE
    shown = ticks[:1]
    for tick in ticks[1:-1]:
        if tick / shown[-1] >= least and ticks[-1] / tick >= least:
            shown.append(tick)
    return shown + ticks[1:][-1:]
