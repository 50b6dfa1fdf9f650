"""The layers that tasks read: a group of bars for each task, a bar for each layer of the encoder."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.colors import to_hex

from headstart.report.drawing import canvas, style, svg_text
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
    layers = len(next(iter(weights.values())))
    thickness = GROUP / layers
    with style():
        figure, axes = canvas(HEIGHT)
        for layer in range(layers):
            places = [group + (layer - (layers - 1) / 2) * thickness for group in range(len(weights))]
            heights = [mix[layer] for mix in weights.values()]
            axes.bar(places, heights, 0.92 * thickness, color=shade(layer, layers), label=layer_name(layer))
        # Where the mix starts, before it has learned anything.
        axes.axhline(1 / layers, color=BASELINE, linestyle=DASHES, linewidth=1.2, label="equal weights")
        axes.set_xticks(range(len(weights)), [textwrap.fill(task, NAME_WIDTH) for task in weights])
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("weight in the mix")
        axes.grid(axis="y", linewidth=0.6)
        columns = min(layers + 1, LEGEND_COLUMNS)
        figure.legend(loc="outside upper left", ncols=columns, frameon=False, handlelength=1.2, columnspacing=1.2)
        return svg_text(figure, name)


def shade(layer: int, layers: int) -> str:
    """Darker from layer to layer."""
    return to_hex(matplotlib.colormaps["Blues"](0.25 + 0.75 * layer / max(1, layers - 1)))


def layer_name(layer: int) -> str:
    return "words" if layer == 0 else f"layer {layer}"
