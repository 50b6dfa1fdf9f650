"""Matrices of shares as heat maps: many small ones in rows and columns, or one with names at both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from headstart.report.drawing import INK, WIDTH

COLOURS = "Blues"
SHADES = PowerNorm(0.5, 0, 1)
"""A share of a tenth, which is much among thirty words, must be seen beside one of nine tenths."""
TICKS = [0.0, 0.1, 0.25, 0.5, 1.0]
MOST_NUMBERED, DARK = 14, 0.45
"""Rows of a map whose cells have room for a number; from which share on the number is white."""
NAME_ROOM = 1.1  # inches


@dataclass(frozen=True, slots=True)
class HeatMap:
    """values: (rows, columns), from 0 to 1."""

    title: str
    values: NDArray[np.float32]


def draw_grid(rows: Sequence[tuple[str, Sequence[HeatMap]]], caption: str) -> Figure:
    """Small maps: a row of them for each name, their titles above the first row; below, what they show."""
    columns = max(len(maps) for _, maps in rows)
    side = (WIDTH - NAME_ROOM) / columns
    figure = Figure(figsize=(WIDTH, 0.75 + 1.08 * side * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for place, (name, maps) in enumerate(rows):
        for axes, one in zip(grid[place], maps, strict=True):
            image = draw_map(axes, one.values)
            if place == 0:
                axes.set_title(one.title, fontsize=8, pad=3)
        grid[place, 0].set_ylabel(name, rotation="horizontal", ha="right", va="center")
    return finished(figure, image, list(grid.flat), caption)


def draw_named(maps: Sequence[HeatMap], names: Sequence[str], caption: str, *, columns: int) -> Figure:
    """Maps of the same things at both axes, a name for each row and column of the maps."""
    columns = min(columns, len(maps))
    lines = -(-len(maps) // columns)
    side = (WIDTH - NAME_ROOM) / columns
    figure = Figure(figsize=(WIDTH, 0.3 + lines * (side + 0.75)), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    size = float(np.clip(0.72 * 72 * side / len(names), 2.5, 9))
    for place, (axes, one) in enumerate(zip(grid.flat, maps, strict=False)):
        image = draw_map(axes, one.values)
        axes.set_title(one.title, fontsize=9)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), names if place % columns == 0 else [], fontsize=size)
        if columns == 1 and len(names) <= MOST_NUMBERED:
            write_numbers(axes, one.values)
    for axes in list(grid.flat)[len(maps) :]:
        axes.set_visible(False)
    return finished(figure, image, list(grid.flat)[: len(maps)], caption)


def draw_map(axes: Axes, values: NDArray[np.float32]) -> Any:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    return axes.imshow(values, cmap=COLOURS, norm=SHADES, interpolation="nearest")


def write_numbers(axes: Axes, values: NDArray[np.float32]) -> None:
    """In percent, where there is anything to tell."""
    for (row, column), value in np.ndenumerate(values):
        if value >= 0.005:
            colour = "white" if value >= DARK else INK
            axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=7.5, color=colour)


def finished(figure: Figure, image: Any, axes: list[Axes], caption: str) -> Figure:
    """With the scale of the shades and the caption."""
    scale = figure.colorbar(image, ax=axes, ticks=TICKS, shrink=0.6, aspect=30, pad=0.01)
    scale.ax.set_yticklabels([f"{100 * tick:.0f} %" for tick in TICKS], fontsize=8)
    scale.outline.set_visible(False)
    figure.supxlabel(caption, fontsize=8, color=INK)
    return figure
