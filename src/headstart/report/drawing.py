"""What every picture shares: size, colours, fonts, names beside lines and bars, and reproducible SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headstart.atomic import write_atomically
from headstart.errors import ConfigError
from headstart.metrics import mean

# Okabe and Ito's colours, which stay apart for colour-blind readers; without their yellow, too pale on white.
COLOURS = ["#555555", "#E69F00", "#56B4E9", "#0072B2", "#D55E00", "#CC79A7", "#009E73", "#882255", "#999933", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*", "p", "h"]
INK, PALE, GRID = "#222222", "#B8C4CE", "#DDDDDD"
WIDTH = 7.0  # inches at 72 units: shown 700 pixels wide, 9 points are 12.5 pixels
LONGEST_NAME = 32
TIMESTAMPS = {"svg": ["Date", "Creator", "Format", "Type"], "png": ["Software"], "pdf": ["CreationDate", "Producer"]}
"""The formats of a picture, and what matplotlib would write into each that differs from run to run."""
# Text stays text: it can be searched, and the reader's own fonts have the glyphs that ours lacks.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "headstart", "text.parse_math": False, "font.size": 9.0, "text.color": INK,
    "axes.edgecolor": "#888888", "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "grid.color": GRID,
}  # fmt: skip


def style() -> AbstractContextManager[None]:
    """The settings under which figures are built and written."""
    return matplotlib.rc_context(STYLE)


def canvas(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def svg_text(figure: Figure, name: str) -> str:
    """The <svg> element alone; `name` makes its ids unique, so that one page can hold several."""
    text = saved(figure, "svg").decode()
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text[text.index("<svg") :])


def saved(figure: Figure, suffix: str) -> bytes:
    """The figure as a file, the same bytes each time it is drawn."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's font has it
        figure.savefig(out, format=suffix, dpi=144, metadata=dict.fromkeys(TIMESTAMPS[suffix]))
    return out.getvalue()


def check_picture(path: Path | None) -> None:
    """Before long work: whether a picture can be written under this name."""
    if path is None:
        return
    if path.suffix.removeprefix(".") not in TIMESTAMPS:
        raise ConfigError(f"{path}: a picture is a file with the ending .svg, .png or .pdf.")
    if not path.parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}. Make it, or name another file.")


def write_picture(figure: Figure, path: Path) -> None:
    """As .svg, .png or .pdf, by the name's ending; an older file of that name is replaced. Within `style()`."""
    check_picture(path)
    written = saved(figure, path.suffix.removeprefix("."))

    def write(partial: Path) -> None:
        partial.write_bytes(written)

    write_atomically(path, write)


def name_bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)


def short(name: str) -> str:
    """A name cut to a length that leaves room for the picture."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def write_value(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), (3, 0), textcoords="offset points", va="center", fontsize=8)


def look(place: int) -> tuple[str, str]:
    """Colour and marker of the row at this place."""
    return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The ascending heights, moved so that neighbours are `gap` apart, within low..high as far as there is room."""
    groups: list[list[float]] = []  # heights that touch move as one, around their mean
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and touching(groups[-2], groups[-1], gap, low, high):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [
        centre(group, gap, low, high) + gap * (place - (len(group) - 1) / 2)
        for group in groups
        for place in range(len(group))
    ]


def touching(below: Sequence[float], above: Sequence[float], gap: float, low: float, high: float) -> bool:
    wanted = gap * (len(below) + len(above)) / 2
    return centre(above, gap, low, high) - centre(below, gap, low, high) < wanted


def centre(group: Sequence[float], gap: float, low: float, high: float) -> float:
    half = gap * (len(group) - 1) / 2
    return max(min(mean(list(group)), high - half), low + half)
