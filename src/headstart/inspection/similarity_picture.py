"""A similarity as a picture: rho by layer or, of a single layer, every pair's cosine against its score."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from headstart.inspection.similarity import Similarity
from headstart.report.drawing import canvas, look, short, style, write_picture
from headstart.report.lines import Line, Point, draw_lines


def write_similarity(found: Similarity, path: Path) -> None:
    """As .svg, .png or .pdf, by the name's ending."""
    with style():
        write_picture(by_layer(found) if len(found.layers) > 1 else by_pair(found), path)


def by_layer(found: Similarity) -> Figure:
    points = [Point(one.layer, one.rho, *one.interval) for one in found.layers]
    title = f"Spearman's rho, {found.covered:,} pairs of {found.unit}"
    return draw_lines([Line(short(found.encoder), points)], "layer", title, log_x=False)


def by_pair(found: Similarity) -> Figure:
    (layer,) = found.layers
    figure, axes = canvas(4.2)
    axes.scatter(found.gold, found.cosines[0], s=12, color=look(3)[0], alpha=0.5, linewidths=0)
    axes.set_xlabel("score by people")
    axes.set_ylabel("cosine")
    axes.set_title(f"{short(found.encoder)}: {found.covered:,} pairs of {found.unit}, rho {layer.rho:.3f}", fontsize=9)
    axes.grid(axis="both", linewidth=0.6)
    return figure
