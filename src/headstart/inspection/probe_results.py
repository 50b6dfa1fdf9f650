"""What probes found in each layer, and the counts that it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headstart.config import Table
from headstart.metrics import Counts


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
