"""The pictures of a comparison, as SVG text: the same results give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, MultipleLocator, NullLocator

from headstart.metrics import mean
from headstart.report.drawing import COLOURS, PALE, canvas, look, name_bars, short, style, svg_text, write_value
from headstart.report.lines import DASHES, Line, Point, draw_lines
from headstart.report.results import Comparison, Mixes, RowFacts
from headstart.report.wording import short_duration

LOG_BEYOND = 20.0
BASELINE = "#777777"
TIME_MARKS = [0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0, 360_000.0]
TIME_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000]
"""Seconds between ticks: whole minutes and hours."""


@dataclass(frozen=True, slots=True)
class Series:
    """One bar for each name; None where there is nothing to show."""

    label: str
    colour: str
    values: Sequence[float | None]


def learning_curve(results: Comparison) -> str:
    """The score over the number of labelled examples, a line and a 95 % band for each row, and the baseline.

    With one number of labelled examples only, points.
    """
    budgets = results.budgets
    with style():
        if len(budgets) > 1:
            return svg_text(draw_curves(results, budgets), "curve")
        return svg_text(draw_points(results), "curve")


def mix_weights(groups: Sequence[Mix]) -> str | None:
    """The weight of each layer in the learned mixes (see `mix_groups`); None if no mix was learned."""
    if not groups:
        return None
    with style():
        return svg_text(draw_mixes(groups), "mix")


def times(results: Comparison) -> str | None:
    """Pretraining time, and fitting time at the most labelled examples (mean over seeds), of each row."""
    fitting = {entry.row: entry.seconds for entry in results.with_most_labels()}
    rows = [row for row in results.rows if row.name in fitting]
    if not rows:
        return None
    pretraining = [row.pretraining_seconds or None for row in rows]
    series = [Series("fitting, one run", COLOURS[3], [fitting[row.name] for row in rows])]
    if any(pretraining):
        series.insert(0, Series("pretraining", PALE, pretraining))
    return draw_bars([row.title for row in rows], series, short_duration, "time", "times", TIME_MARKS)


def forgetting(results: Comparison) -> str | None:
    """Perplexity of each fine-tuned row's language model before and after the task; None if it was never measured."""
    rows, before, after = [], [], []
    for row in results.rows:
        measured = [cell.forgetting for cell in results.cells if cell.row == row.name]
        finite = [one for one in measured if one and math.isfinite(one.before) and math.isfinite(one.after)]
        if finite:
            rows.append(row.title)
            before.append(mean([one.before for one in finite]))
            after.append(mean([one.after for one in finite]))
    if not rows:
        return None
    series = [Series("before the task", PALE, before), Series("after the task", COLOURS[4], after)]
    return draw_bars(rows, series, figure_text, "perplexity of held-out text (lower is better)", "forgetting")


def legend_title(row: RowFacts, results: Comparison) -> str:
    """The row's title, marked where it collapsed at the most labelled examples."""
    collapsed = any(entry.row == row.name and entry.is_collapsed for entry in results.with_most_labels())
    return f"{short(row.title)} (collapsed)" if collapsed else short(row.title)


def draw_curves(results: Comparison, budgets: Sequence[int]) -> Figure:
    lines = []
    for row in results.rows:
        entries = [entry for entry in results.table if entry.row == row.name]
        points = [Point(e.labels, 100 * e.mean, 100 * e.low, 100 * e.high) for e in entries]
        lines.append(Line(legend_title(row, results), points))
    if results.baseline is not None:
        height = 100 * results.baseline.score
        ends = [Point(budgets[0], height), Point(budgets[-1], height)]
        lines.append(Line(short(results.baseline.title), ends, BASELINE, dashed=True))
    return draw_lines(lines, "labelled examples", f"{results.metric_title} on dev, %", log_x=True)


def draw_points(results: Comparison) -> Figure:
    titles = {row.name: (place, legend_title(row, results)) for place, row in enumerate(results.rows)}
    entries = results.table
    figure, axes = canvas(0.8 + 0.34 * (len(entries) + (results.baseline is not None)))
    for height, entry in enumerate(entries):
        place, _ = titles[entry.row]
        colour, marker = look(place)
        axes.plot([100 * entry.low, 100 * entry.high], [height, height], color=colour, linewidth=2.2)
        axes.plot(100 * entry.mean, height, color=colour, marker=marker, markersize=6)
    names = [titles[entry.row][1] for entry in entries]
    if results.baseline is not None:
        axes.axvline(100 * results.baseline.score, color=BASELINE, linestyle=DASHES, linewidth=1.2)
        axes.plot(100 * results.baseline.score, len(names), color=BASELINE, marker="|", markersize=9)
        names.append(short(results.baseline.title))
    name_bars(axes, names)
    axes.set_xlabel(f"{results.metric_title} on dev, % (mean and 95 % interval)")
    axes.grid(axis="x", linewidth=0.6)
    return figure


@dataclass(frozen=True, slots=True)
class Mix:
    """A learned mix, averaged over seeds."""

    title: str
    colour: str
    weights: list[float]
    gamma: float | None


def mix_groups(results: Comparison) -> list[Mix]:
    """The learned mixes of each row at the most labelled examples, averaged over the seeds."""
    most = max((cell.labels for cell in results.cells), default=0)
    groups: list[Mix] = []
    for place, row in enumerate(results.rows):
        mixes = [cell.mix for cell in results.cells if (cell.row, cell.labels) == (row.name, most)]
        groups += mixes_of(row.title, mixes, look(place)[0])
    return groups


def mixes_of(title: str, runs: Sequence[Mixes], colour: str = COLOURS[0]) -> list[Mix]:
    """The mixes of several runs of one model, averaged: one for each place that has more than one layer to weigh."""
    learned = [mixes for mixes in runs if mixes]
    found = []
    for where in learned[0] if learned else []:
        weights = [mixes[where].weights for mixes in learned]
        if len(weights[0]) > 1:
            gammas = [gamma for mixes in learned if (gamma := mixes[where].gamma) is not None]
            layers = [mean(list(layer)) for layer in zip(*weights, strict=True)]
            name = title if len(learned[0]) == 1 else f"{title}, {where}"
            found.append(Mix(name, colour, layers, mean(gammas) if gammas else None))
    return found


def draw_mixes(groups: Sequence[Mix]) -> Figure:
    figure, axes = canvas(0.5 + 0.23 * sum(len(mix.weights) + 1.6 for mix in groups))
    ticks: list[float] = []
    names: list[str] = []
    top = 0.0
    for mix in groups:
        heading = short(mix.title) if mix.gamma is None else f"{short(mix.title)} (gamma {mix.gamma:.2f})"
        axes.annotate(heading, (0, top), (4, 0), textcoords="offset points", fontweight="bold", va="center")
        for layer, weight in enumerate(mix.weights):
            top += 1
            axes.barh(top, weight, height=0.78, color=mix.colour)
            write_value(axes, weight, top, f"{weight:.2f}")
            ticks.append(top)
            names.append("words" if layer == 0 else f"layer {layer}")
        top += 1.6
    axes.set_yticks(ticks, names)
    axes.set_ylim(top - 0.8, -0.8)
    axes.set_xlim(0, 1.12 * max(max(mix.weights) for mix in groups))
    axes.set_xlabel("weight in the mix (the weights of one mix sum to 1)")
    axes.tick_params(axis="y", length=0)
    return figure


def draw_bars(
    names: Sequence[str], series: Sequence[Series], text: Callable[[float], str], what: str, picture: str,
    marks: Sequence[float] = (),
) -> str:  # fmt: skip
    """Horizontal bars with their values, on a log axis (with ticks at `marks`) where they differ more than 20 times."""
    values = [value for one in series for value in one.values if value is not None and value > 0]
    log = bool(values) and max(values) / min(values) > LOG_BEYOND
    with style():
        figure, axes = canvas(1.0 + (0.12 + 0.2 * len(series)) * len(names))
        start = min(values) / 3 if log else 0.0
        thickness = 0.8 / len(series)
        for place, one in enumerate(series):
            for height, value in enumerate(one.values):
                if value is None:
                    continue
                y = height + (place - (len(series) - 1) / 2) * thickness
                axes.barh(y, max(value - start, 0.0), left=start, height=0.92 * thickness, color=one.colour)
                write_value(axes, max(value, start), y, text(value))
        if log:
            axes.set_xscale("log")
        axes.set_xlim(start, (max(values) * (max(values) / start) ** 0.16) if log else 1.18 * max(values, default=1.0))
        axes.xaxis.set_minor_locator(NullLocator())
        if log and marks:
            axes.xaxis.set_major_locator(FixedLocator([mark for mark in marks if start <= mark <= axes.get_xlim()[1]]))
        if not log:
            few = 4  # "12 min 30 s" is wide
            step = next((step for step in TIME_STEPS if max(values, default=0.0) <= few * step), None)
            axes.xaxis.set_major_locator(MultipleLocator(step) if marks and step else MaxNLocator(nbins=few))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
        axes.set_xlabel(f"{what}{', log scale' if log else ''}")
        name_bars(axes, [short(name) for name in names])
        handles = [Patch(color=one.colour, label=one.label) for one in series]
        figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), frameon=False)
        return svg_text(figure, picture)


def figure_text(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")
