"""What probes found in each layer, and the counts that it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

import numpy as np
from matplotlib.figure import Figure

from headstart.config import Table
from headstart.metrics import Counts
from headstart.report.html_table import html_table
from headstart.report.lines import Line, Point, draw_lines
from headstart.report.plots import BASELINE
from headstart.report.wording import percent


@dataclass(frozen=True, slots=True)
class LayerProbe:
    """The probe of one layer."""

    layer: int
    accuracy: float
    interval: tuple[float, float]
    """95 %, by bootstrap over the dev sentences."""
    control: float | None
    """Accuracy in the control task; None for whole texts, which have no types that return in dev."""
    right: tuple[int, ...] = field(repr=False)
    """Right answers in each dev sentence."""
    scored: tuple[int, ...] = field(repr=False)
    """Words, or texts, that were scored in each dev sentence: 0 in one that was left out."""

    @property
    def counts(self) -> Counts:
        """(N, 2), for intervals and paired tests."""
        return np.array([self.right, self.scored], dtype=np.float64).T

    @property
    def selectivity(self) -> float | None:
        return None if self.control is None else self.accuracy - self.control

    def as_table(self) -> Table:
        return {
            "layer": self.layer,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "control": self.control,
            "selectivity": self.selectivity,
        }


@dataclass(frozen=True, slots=True)
class Probed:
    """The probes of all layers of an encoder. train, dev: how many words or texts were drawn from each."""

    encoder: str
    unit: str
    train: int
    dev: int
    labels: int
    left_out: int
    """Sentences that are longer than what the encoder reads."""
    baseline: float
    """Accuracy of the most frequent tag of each word type; of texts, of the most frequent label."""
    layers: tuple[LayerProbe, ...]

    @property
    def best(self) -> LayerProbe:
        return max(self.layers, key=lambda layer: layer.accuracy)

    @property
    def baseline_title(self) -> str:
        return "each word's most frequent tag" if self.unit == "words" else "the most frequent label"

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Headers and a row for each layer, for people."""
        return ["layer", "accuracy", "95 % interval", "control", "selectivity"], [
            [
                str(layer.layer),
                percent(layer.accuracy),
                " to ".join(f"{100 * bound:.1f}" for bound in layer.interval),
                "-" if layer.control is None else percent(layer.control),
                "-" if layer.selectivity is None else f"{100 * layer.selectivity:.1f}",
            ]
            for layer in self.layers
        ]

    def _repr_html_(self) -> str:
        about = f"<p>{escape(self.encoder)}; baseline, {escape(self.baseline_title)}: {percent(self.baseline)}</p>"
        return html_table(*self.rows()) + about

    def as_table(self) -> Table:
        """The figures as plain values, for JSON; without the counts of each sentence."""
        return {
            "encoder": self.encoder,
            self.unit: {"train": self.train, "dev": self.dev},
            "labels": self.labels,
            "left_out": self.left_out,
            "baseline": self.baseline,
            "layers": [layer.as_table() for layer in self.layers],
        }


def draw_probes(probed: Probed) -> Figure:
    """Accuracy by layer with its interval, the control task beside it, and the baseline across. Within `style()`."""
    points = [Point(one.layer, 100 * one.accuracy, *(100 * bound for bound in one.interval)) for one in probed.layers]
    controls = [Point(one.layer, 100 * one.control) for one in probed.layers if one.control is not None]
    height = 100 * probed.baseline
    ends = [Point(probed.layers[0].layer, height), Point(probed.layers[-1].layer, height)]
    lines = [Line(probed.encoder, points), *([Line("control task", controls)] if controls else [])]
    lines.append(Line("baseline", ends, BASELINE, dashed=True))
    return draw_lines(lines, "layer", "accuracy on dev, %", log_x=False)
