"""The layers that tasks read: a group of bars for each task, a bar for each layer of the encoder."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.colors import to_hex
from matplotlib.figure import Figure, SubFigure

from headstart.report.drawing import WIDTH, style, svg_text
from headstart.report.lines import DASHES
from headstart.report.plots import BASELINE

HEIGHT = 2.9
GROUP = 0.84
"""Of the room of a group, what its bars take."""
NAME_WIDTH = 14
"""Letters of a task's name on one line: six groups share the width."""
LEGEND_COLUMNS = 8
"""That fit beside each other."""


def layer_bars(weights: Mapping[str, Sequence[float]], name: str) -> str:
    """weights: the mix of each task, by its title, lowest layer first. name: makes the picture's ids unique."""
    with style():
        return svg_text(draw_layer_bars(list(weights.items())), name)


def draw_layer_bars(groups: Sequence[tuple[str, Sequence[float]]]) -> Figure:
    """The mix of each task, with its title. Encoders of different numbers of layers have a picture each, one below the
    other, because the same weight says another thing among three layers and among seven."""
    depths = sorted({len(weights) for _, weights in groups})
    figure = Figure(figsize=(WIDTH, HEIGHT * len(depths)), layout="constrained")
    parts = figure.subfigures(len(depths), 1, squeeze=False).flat
    for part, layers in zip(parts, depths, strict=True):
        draw_group(part, [(title, weights) for title, weights in groups if len(weights) == layers], layers)
    return figure


def draw_group(figure: SubFigure, groups: Sequence[tuple[str, Sequence[float]]], layers: int) -> None:
    axes = figure.add_subplot()
    thickness = GROUP / layers
    for layer in range(layers):
        places = [group + (layer - (layers - 1) / 2) * thickness for group in range(len(groups))]
        heights = [weights[layer] for _, weights in groups]
        axes.bar(places, heights, 0.92 * thickness, color=shade(layer, layers), label=layer_name(layer))
    # Where the mix starts, before it has learned anything.
    axes.axhline(1 / layers, color=BASELINE, linestyle=DASHES, linewidth=1.2, label="equal weights")
    axes.set_xticks(range(len(groups)), [textwrap.fill(title, NAME_WIDTH) for title, _ in groups])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("weight in the mix")
    axes.grid(axis="y", linewidth=0.6)
    columns = min(layers + 1, LEGEND_COLUMNS)
    figure.legend(loc="outside upper left", ncols=columns, frameon=False, handlelength=1.2, columnspacing=1.2)


def shade(layer: int, layers: int) -> str:
    """Darker from layer to layer."""
    return to_hex(matplotlib.colormaps["Blues"](0.25 + 0.75 * layer / max(1, layers - 1)))


def layer_name(layer: int) -> str:
    return "words" if layer == 0 else f"layer {layer}"
