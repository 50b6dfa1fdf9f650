"""What was found about the occurrences of a word: its clusters, their names and their sentences."""

from __future__ import annotations

from dataclasses import dataclass

from headstart.config import Table
from headstart.inspection.neighbours import in_bold
from headstart.inspection.occurrence_text import MarkedWord
from headstart.report.html_table import html_table

SHOWN = 3


@dataclass(frozen=True, slots=True)
class ClusteredOccurrence:
    """A word in its sentence; cosine: to its cluster's centre; x, y: its place in the picture."""

    place: MarkedWord
    cosine: float
    x: float
    y: float

    def as_table(self) -> Table:
        marked = {"sentence": self.place.sentence, "start": self.place.start, "end": self.place.end}
        return {**marked, "cosine": self.cosine, "x": self.x, "y": self.y}


@dataclass(frozen=True, slots=True)
class SenseCluster:
    """words: the most distinctive of its sentences, none where there is one cluster; occurrences: the most central
    first."""

    words: tuple[str, ...]
    occurrences: tuple[ClusteredOccurrence, ...]

    @property
    def name(self) -> str:
        return ", ".join(self.words) or "all"

    def as_table(self) -> Table:
        return {"words": list(self.words), "occurrences": [one.as_table() for one in self.occurrences]}


@dataclass(frozen=True, slots=True)
class SenseClusters:
    """clusters: the largest first. silhouette: of the split, None where there is one cluster. found: sentences of the
    text with the word. variances: shares of the picture's two axes."""

    encoder: str
    layer: int
    word: str
    found: int
    silhouette: float | None
    variances: tuple[float, float]
    clusters: tuple[SenseCluster, ...]

    @property
    def occurrences(self) -> int:
        return sum(len(cluster.occurrences) for cluster in self.clusters)

    def as_table(self) -> Table:
        return {
            "encoder": self.encoder,
            "layer": self.layer,
            "word": self.word,
            "found": self.found,
            "silhouette": self.silhouette,
            "variances": list(self.variances),
            "clusters": [cluster.as_table() for cluster in self.clusters],
        }

    def _repr_html_(self) -> str:
        from headstart.inspection.sense_picture import sense_svg  # matplotlib, which `headstart.load` need not wait for

        rows = [
            (cluster.name, f"{len(cluster.occurrences):,}", in_bold(place.sentence, place.start, place.end))
            for cluster in self.clusters
            for place in [one.place for one in cluster.occurrences[:SHOWN]]
        ]
        table = html_table(["cluster", "occurrences", f"{self.word} in {self.encoder}, layer {self.layer}"], rows)
        return table + sense_svg(self)
